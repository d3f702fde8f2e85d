"""HTTP over a link: each connection is a TCP connection that the node makes."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

from fleetctl.errors import FleetError
from fleetctl.links.link import Link, Stream
from fleetctl.ollama.http import BoundedTransport, httpcore


def link_transport(link: Link, timeout: float) -> BoundedTransport:
    return BoundedTransport(_LinkBackend(link, timeout))


class _LinkBackend(httpcore.NetworkBackend):
    def __init__(self, link: Link, timeout: float) -> None:
        self._link = link
        self._timeout = timeout

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = self._timeout if timeout is None else min(timeout, self._timeout)
        try:
            return _LinkStream(self._link.tcp(host, port, seconds))
        except (OSError, EOFError, FleetError) as error:
            raise httpcore.ConnectError(str(error)) from error


class _LinkStream(httpcore.NetworkStream):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._stream.settimeout(timeout)
        try:
            return self._stream.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout("timed out") from error
        except (OSError, EOFError) as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.settimeout(timeout)
        try:
            self._stream.sendall(buffer)
        except TimeoutError as error:
            raise httpcore.WriteTimeout("timed out") from error
        except (OSError, EOFError) as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        raise httpcore.UnsupportedProtocol("https is not supported over a link")
