"""A minimal HTTP/1.1 server: one thread per connection, request bodies, chunked responses.

Importing the standard library's server takes longer than the rest of the start."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from . import log

_REASONS = {
    200: "OK",
    201: "Created",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
}


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    status: int
    content: bytes | Iterator[bytes] = b""
    kind: str = ""


class ConnectionCut(Exception):
    """Raised by a stream to end the connection without ending the body."""


Handler = Callable[[Request], Response]


def json_response(status: int, value: object) -> Response:
    return Response(status, encode(value), "application/json; charset=utf-8")


def text_response(status: int, text: str, kind: str = "text/plain") -> Response:
    return Response(status, text.encode(), kind)


def encode(value: object) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def serve(listener: socket.socket, handler: Handler) -> None:
    while True:
        connection, address = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        arguments = (connection, address[0], handler)
        threading.Thread(target=_serve_connection, args=arguments, daemon=True).start()


def _serve_connection(connection: socket.socket, client: str, handler: Handler) -> None:
    try:
        with connection, connection.makefile("rb") as incoming:
            while request := _read(incoming, connection):
                started = time.monotonic()
                response = handler(request)
                try:
                    _write(connection, request, response)
                finally:
                    took = time.monotonic() - started
                    path = request.path
                    log.access(response.status, took, client, request.method, path)
                if request.headers.get("connection", "").lower() == "close":
                    return
    except (OSError, ConnectionCut, ValueError):
        return  # the client disconnected, or does not speak HTTP


def _read(incoming: BinaryIO, connection: socket.socket) -> Request | None:
    words = incoming.readline(65536).decode("latin-1").split()
    if len(words) != 3:
        return None
    headers: dict[str, str] = {}
    while line := incoming.readline(65536).decode("latin-1").strip():
        key, _, value = line.partition(":")
        headers[key.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    path = words[1].partition("?")[0]
    return Request(words[0], path, headers, _read_body(incoming, headers))


def _read_body(incoming: BinaryIO, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return incoming.read(int(headers.get("content-length", "0")))
    chunks = []
    while size := int(incoming.readline(100).partition(b";")[0], 16):
        chunks.append(incoming.read(size))
        incoming.readline(2)
    while incoming.readline(65536).strip():
        pass
    return b"".join(chunks)


def _write(connection: socket.socket, request: Request, response: Response) -> None:
    head = [f"HTTP/1.1 {response.status} {_REASONS[response.status]}"]
    head.append("Date: " + time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()))
    if response.kind:
        head.append(f"Content-Type: {response.kind}")
    content = response.content
    if isinstance(content, bytes):
        head += [f"Content-Length: {len(content)}", "", ""]
        body = b"" if request.method == "HEAD" else content
        connection.sendall("\r\n".join(head).encode() + body)
        return
    connection.sendall("\r\n".join([*head, "Transfer-Encoding: chunked", "", ""]).encode())
    for chunk in content:
        connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
    connection.sendall(b"0\r\n\r\n")
