"""The client of Ollama's API: limits in time and size, against servers that misbehave."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from fleetctl.links import LocalLink, transport
from fleetctl.ollama import Client, NoAnswer

BROKEN_OFF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 2**20

Serve = Callable[[socket.socket], None]


@contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """The URL of a server that handles each connection with `serve`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def handle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=handle, args=listener.accept()[:1], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def request(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith((b"\r\n\r\n", b"}")):
        received = connection.recv(65536)
        if not received:
            raise OSError("the client has disconnected")
        data += received
    return data


def response(body: object, status: str = "200 OK", headers: str = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode() + data


def dripping(data: bytes, seconds: float = 0.05) -> Serve:
    def serve(connection: socket.socket) -> None:
        request(connection)
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
            time.sleep(seconds)
        time.sleep(10)

    return serve


@pytest.fixture(params=["direct", "link"])
def client(request: pytest.FixtureRequest) -> Callable[..., Client]:
    def make(url: str, timeout: float = 5) -> Client:
        over = transport(LocalLink(), timeout) if request.param == "link" else None
        return Client(url, timeout=timeout, transport=over)

    return make


def test_an_answer_that_breaks_off_is_no_answer(client: Callable[..., Client]) -> None:
    def serve(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(BROKEN_OFF)

    for ask in (Client.facts, lambda api: list(api.pull("m")), lambda api: api.delete("m")):
        with (
            serving(serve) as url,
            client(url) as api,
            pytest.raises(NoAnswer, match=r"was not answered|is not Ollama"),
        ):
            ask(api)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000,
        response(b"x" * 1000),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1000,
    ],
    ids=["header", "body", "chunks"],
)
def test_a_server_that_drips_is_given_up_at_the_deadline(
    answer: bytes, client: Callable[..., Client]
) -> None:
    with serving(dripping(answer, 0.01)) as url, client(url, timeout=0.8) as api:
        started = time.monotonic()
        with pytest.raises(NoAnswer, match=r"^/api/version was not answered in 0.8 s$"):
            api.facts()
        assert 0.7 < time.monotonic() - started < 4


@pytest.mark.parametrize(
    "ask", [Client.facts, lambda api: list(api.pull("m"))], ids=["get", "pull"]
)
def test_a_silent_server_is_given_up(
    ask: Callable[[Client], object], client: Callable[..., Client]
) -> None:
    with serving(dripping(b"")) as url, client(url, timeout=0.4) as api:
        started = time.monotonic()
        with pytest.raises(NoAnswer, match=r"was not answered in 0.4 s"):
            ask(api)
        assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("ask", "limit"),
    [(Client.facts, 8 * MIB), (lambda api: list(api.pull("m")), MIB)],
    ids=["a body", "a line"],
)
def test_an_endless_answer_is_cut_off(
    ask: Callable[[Client], object], limit: int, client: Callable[..., Client]
) -> None:
    sent = [0]
    gone = threading.Event()

    def serve(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(ENDLESS)
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        try:
            while True:
                connection.sendall(chunk)
                sent[0] += len(chunk)
        finally:
            gone.set()

    with serving(serve) as url, client(url, timeout=30) as api:
        with pytest.raises(NoAnswer, match="answered by something that is not Ollama"):
            ask(api)
        assert gone.wait(5), "the connection is still open"
    assert limit < sent[0] < limit + 16 * MIB  # what is in the sockets' buffers counts as sent


def test_a_pull_may_take_longer_than_the_time_out(client: Callable[..., Client]) -> None:
    def serve(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(ENDLESS)
        for line in [b'{"status":"downloading"}\n'] * 8 + [b'{"status":"success"}\n']:
            time.sleep(0.15)
            connection.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    with serving(serve) as url, client(url, timeout=0.6) as api:
        assert [progress.status for progress in api.pull("m")][-1] == "success"


def test_lines_are_put_together_across_packets(client: Callable[..., Client]) -> None:
    lines = b'{"status":"a"}\n{"status":"b"}\n{"error":"no such model"}'
    with serving(dripping(response(lines), 0.001)) as url, client(url) as api:
        pull = api.pull("m")
        assert [next(pull).status, next(pull).status] == ["a", "b"]
        with pytest.raises(NoAnswer, match=r"^no such model$"):
            next(pull)


def test_requests_share_a_connection_and_name_the_address(client: Callable[..., Client]) -> None:
    connections: list[list[bytes]] = []

    def serve(connection: socket.socket) -> None:
        requests: list[bytes] = []
        connections.append(requests)
        while True:
            requests.append(request(connection))
            connection.sendall(response({"version": "0.24.0", "models": [{"name": "m:latest"}]}))

    with serving(serve) as url, client(url) as api:
        facts = api.facts()
    listens = url.removeprefix("http://")
    assert (facts.listens, facts.version, list(facts.models)) == (listens, "0.24.0", ["m:latest"])
    (requests,) = connections
    assert len(requests) == 2
    assert all(f"\r\nHost: {listens}\r\n".encode() in each for each in requests)


def test_a_server_that_closes_after_each_answer_is_asked_again(
    client: Callable[..., Client],
) -> None:
    def serve(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(response({"version": "1"}, headers="Connection: close\r\n"))

    with serving(serve) as url, client(url) as api:
        assert api.facts().version == "1"


def test_proxies_of_the_environment_are_ignored(
    client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        asked.append(request(connection))

    def serve(connection: socket.socket) -> None:
        while request(connection):
            connection.sendall(response({"version": "1"}))

    with serving(proxy) as proxy_url, serving(serve) as url:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy_url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with client(url) as api:
            assert api.facts().version == "1"
    assert not asked


def test_redirects_are_not_followed(client: Callable[..., Client]) -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        asked.append(request(connection))
        connection.sendall(response(b"", "302 Found", "Location: /elsewhere\r\n"))

    with (
        serving(serve) as url,
        client(url) as api,
        pytest.raises(NoAnswer, match=r"^/api/version was answered with HTTP 302$"),
    ):
        api.facts()
    assert len(asked) == 1


def test_compressed_answers_are_not_unpacked(client: Callable[..., Client]) -> None:
    bomb = gzip.compress(b'{"version":"' + b"x" * 64 * MIB + b'"}')

    def serve(connection: socket.socket) -> None:
        assert b"gzip" not in request(connection)
        connection.sendall(response(bomb, headers="Content-Encoding: gzip\r\n"))

    with (
        serving(serve) as url,
        client(url) as api,
        pytest.raises(NoAnswer, match="is not Ollama"),
    ):
        api.facts()


def test_errors_of_ollama_are_passed_on(client: Callable[..., Client]) -> None:
    def serve(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(response({"error": "model 'm' not found"}, "404 Not Found"))

    with serving(serve) as url, client(url) as api, pytest.raises(NoAnswer) as caught:
        api.delete("m")
    assert str(caught.value) == "model 'm' not found"


def test_a_port_where_nothing_listens_is_named(client: Callable[..., Client]) -> None:
    with (
        client("http://127.0.0.1:1") as api,
        pytest.raises(NoAnswer, match=r"^nothing answers at 127.0.0.1 port 1$"),
    ):
        api.loaded()
