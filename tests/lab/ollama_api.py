"""A minimal Ollama client, for tests that observe a node without the product's code."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

from tests.lab.node import OLLAMA_PORT, Node


def ask(node: Node, path: str, body: object = None, method: str = "") -> Any:
    """Send one request and return its JSON answer, or None if it is empty."""
    lines = list(stream(node, path, body, method))
    return lines[-1] if lines else None


def stream(node: Node, path: str, body: object = None, method: str = "") -> Iterator[Any]:
    """Yield the JSON objects of an answer as they arrive; http.client ignores proxy settings."""
    connection = http.client.HTTPConnection(node.address, OLLAMA_PORT, timeout=60)
    try:
        connection.request(
            method or ("GET" if body is None else "POST"),
            path,
            None if body is None else json.dumps(body),
        )
        for line in connection.getresponse():
            yield json.loads(line)
    finally:
        connection.close()
