"""A typed client for Ollama's API, over one stream that stays open."""

from __future__ import annotations

import http.client
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fleetctl.model.facts import Api

_LARGEST = 8 * 2**20


class _Version(BaseModel):
    version: str


class _Model(BaseModel):
    name: str
    digest: str = ""


class _Models(BaseModel):
    models: list[_Model] | None = None


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
            port=self._connection.port,
            version=version.version,
            models={model.name: model.digest for model in present.models or ()},
        )

    def _get(self, path: str, kind: type[Answer]) -> Answer:
        try:
            self._connection.request("GET", path)
            response = self._connection.getresponse()
            body = response.read(_LARGEST)
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise NoAnswer(f"{path} was not answered: {error or type(error).__name__}") from error
        if response.status != 200:
            raise NoAnswer(f"{path} was answered with HTTP {response.status}")
        try:
            return kind.model_validate_json(body)
        except ValidationError:
            raise NoAnswer(f"{path} was answered by something that is not Ollama") from None
