"""The client of Ollama's API, where what answers is not well."""

from __future__ import annotations

import socket

import pytest

from fleetctl.ollama.api import Client, NoAnswer

BROKEN_OFF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort"


def test_an_answer_that_breaks_off_is_no_answer_whatever_was_asked() -> None:
    for ask in (Client.facts, lambda api: list(api.pull("m")), lambda api: api.delete("m")):
        ours, theirs = socket.socketpair()
        theirs.sendall(BROKEN_OFF)
        theirs.shutdown(socket.SHUT_WR)
        client = Client(ours, "127.0.0.1", 11434)
        with pytest.raises(NoAnswer, match=r"was not answered|is not Ollama"):
            ask(client)
        client.close()
        theirs.close()
