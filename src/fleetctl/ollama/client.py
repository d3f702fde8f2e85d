"""A typed client of Ollama's API. What it reads is limited in time and in size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import BaseModel, ValidationError

from fleetctl.model import address
from fleetctl.model.facts import Api

if TYPE_CHECKING:
    import httpx

_MAX_BODY = 8 * 2**20
_MAX_LINE = 2**20
_MAX_SECONDS_TO_CONNECT = 10


class _Version(BaseModel):
    version: str


class _Model(BaseModel):
    name: str
    digest: str = ""


class _Models(BaseModel):
    models: list[_Model] | None = None


class Progress(BaseModel):
    """A line of the answer to a pull. Without a total it is only a status."""

    status: str = ""
    error: str = ""
    digest: str = ""
    total: int = 0
    completed: int = 0


Answer = TypeVar("Answer", bound=BaseModel)


class NoAnswer(Exception):
    """No answer, an error, or not an answer of Ollama's; the text says which."""


class Client:
    """A context manager; the first request connects, and all use one connection.

    `base_url` must name the address that Ollama listens on: Ollama checks the Host header.
    `timeout` limits each request as a whole; for a pull it limits each wait for data.
    Without a transport the client connects directly; proxies of the environment are not used.
    """

    def __init__(
        self, base_url: str, *, timeout: float, transport: httpx.BaseTransport | None = None
    ) -> None:
        from fleetctl.ollama.http import BoundedTransport, httpx  # takes 30 ms to import

        self._http = httpx.Client(
            base_url=base_url,
            transport=transport or BoundedTransport(),
            trust_env=False,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, _MAX_SECONDS_TO_CONNECT)),
        )
        self._timeout = timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def facts(self) -> Api:
        version = self._get("/api/version", _Version)
        present = self._get("/api/tags", _Models)
        return Api(
            listens=address.join_host_port(*self._place),
            version=version.version,
            models={model.name: model.digest for model in present.models or ()},
        )

    def loaded(self) -> list[str]:
        """The models that are in memory."""
        return [model.name for model in self._get("/api/ps", _Models).models or ()]

    def pull(self, model: str) -> Iterator[Progress]:
        """Ends after `success`. Ollama reports an error at any time, inside a 200."""
        body = {"model": model, "stream": True}
        with self._response("POST", "/api/pull", body, stream=True) as response:
            for line in _lines(response):
                progress = _read("/api/pull", line, Progress)
                if progress.error:
                    raise NoAnswer(progress.error)
                yield progress
                if progress.status == "success":
                    return
        raise NoAnswer("the download ended before it was complete")

    def delete(self, model: str) -> None:
        with self._response("DELETE", "/api/delete", {"model": model}) as response:
            _body(response)

    def _get(self, path: str, kind: type[Answer]) -> Answer:
        with self._response("GET", path) as response:
            return _read(path, _body(response), kind)

    @contextmanager
    def _response(
        self, method: str, path: str, body: dict[str, object] | None = None, *, stream: bool = False
    ) -> Iterator[httpx.Response]:
        from fleetctl.ollama.http import DEADLINE, httpx

        extensions = {} if stream else {DEADLINE: self._timeout}
        try:
            with self._http.stream(method, path, json=body, extensions=extensions) as response:
                if response.status_code != 200:
                    raise NoAnswer(_refusal(path, response))
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            host, port = self._place
            raise NoAnswer(f"nothing answers at {host} port {port}") from error
        except httpx.TimeoutException as error:
            raise NoAnswer(f"{path} was not answered in {self._timeout:g} s") from error
        except httpx.HTTPError as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise NoAnswer(f"{path} was not answered: {why}") from error

    @property
    def _place(self) -> tuple[str, int]:
        url = self._http.base_url
        return url.host, url.port or (443 if url.scheme == "https" else 80)


def _body(response: httpx.Response) -> bytes:
    """Cut off at the limit; what is left is then not valid JSON."""
    body = bytearray()
    for data in response.iter_raw():
        body += data
        if len(body) > _MAX_BODY:
            break
    return bytes(body[:_MAX_BODY])


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """A line over the limit is cut, and then is not valid JSON."""
    rest = bytearray()
    for data in response.iter_raw():
        rest += data
        if b"\n" in data:
            *lines, rest = rest.split(b"\n")
            yield from map(bytes, lines)
        if len(rest) > _MAX_LINE:
            yield bytes(rest[:_MAX_LINE])
            return
    if rest:
        yield bytes(rest)


def _refusal(path: str, response: httpx.Response) -> str:
    body = _body(response)
    why = _read(path, body, Progress).error if body.startswith(b"{") else ""
    return why or f"{path} was answered with HTTP {response.status_code}"


def _read(path: str, body: bytes, kind: type[Answer]) -> Answer:
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        raise NoAnswer(f"{path} was answered by something that is not Ollama") from None
