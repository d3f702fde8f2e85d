"""A typed client for Ollama's API, over one stream that stays open."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fleetctl.model import address
from fleetctl.model.facts import Api

_LARGEST = 8 * 2**20
_LONGEST_LINE = 2**20


class _Version(BaseModel):
    version: str


class _Model(BaseModel):
    name: str
    digest: str = ""


class _Models(BaseModel):
    models: list[_Model] | None = None


class Progress(BaseModel):
    """A line of the answer to a pull; what has no total yet is only a status."""

    status: str = ""
    error: str = ""
    digest: str = ""
    total: int = 0
    completed: int = 0


Answer = TypeVar("Answer", bound=BaseModel)


class NoAnswer(Exception):
    """Nothing, or nothing sensible, came back; the text says what."""


class Client:
    """Speaks to the address that Ollama listens on, so that its check of the Host header passes."""

    def __init__(self, stream: Any, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port)
        self._connection.sock = stream

    def close(self) -> None:
        self._connection.close()

    def facts(self) -> Api:
        version = self._get("/api/version", _Version)
        present = self._get("/api/tags", _Models)
        return Api(
            listens=address.join_host_port(self._connection.host, self._connection.port),
            version=version.version,
            models={model.name: model.digest for model in present.models or ()},
        )

    def loaded(self) -> list[str]:
        """The models that are in memory."""
        return [model.name for model in self._get("/api/ps", _Models).models or ()]

    def pull(self, model: str) -> Iterator[Progress]:
        """Ends when Ollama has said `success`; an error may come at any moment, inside a 200."""
        response = self._request("POST", "/api/pull", {"model": model, "stream": True})
        while True:
            with _answering("/api/pull"):
                line = response.readline(_LONGEST_LINE)
            if not line:
                raise NoAnswer("the download ended before it was complete")
            progress = _read("/api/pull", line, Progress)
            if progress.error:
                raise NoAnswer(progress.error)
            yield progress
            if progress.status == "success":
                return

    def delete(self, model: str) -> None:
        with _answering("/api/delete"):
            self._request("DELETE", "/api/delete", {"model": model}).read(_LARGEST)

    def _get(self, path: str, kind: type[Answer]) -> Answer:
        with _answering(path):
            said = self._request("GET", path).read(_LARGEST)
        return _read(path, said, kind)

    def _request(
        self, method: str, path: str, body: dict[str, object] | None = None
    ) -> http.client.HTTPResponse:
        with _answering(path):
            self._connection.request(method, path, json.dumps(body) if body else None)
            response = self._connection.getresponse()
            if response.status == 200:
                return response
            said = response.read(_LARGEST)
        why = _read(path, said, Progress).error if said.startswith(b"{") else ""
        raise NoAnswer(why or f"{path} was answered with HTTP {response.status}")


@contextmanager
def _answering(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, http.client.HTTPException) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise NoAnswer(f"{path} was not answered: {why}") from error


def _read(path: str, body: bytes, kind: type[Answer]) -> Answer:
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        raise NoAnswer(f"{path} was answered by something that is not Ollama") from None
