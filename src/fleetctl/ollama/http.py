"""An httpx transport with real deadlines, over any httpcore network backend.

httpx's own time-outs apply to each read, so a server that sends a byte a second is never timed out.
"""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# Without this httpx imports its command line, and with it rich and pygments (50 ms). It is written
# to work without.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

import httpcore  # noqa: E402
import httpx  # noqa: E402

__all__ = ["DEADLINE", "BoundedTransport", "httpcore", "httpx"]

DEADLINE = "fleetctl-deadline"
"""Request extension: seconds for the whole exchange, from connecting to the end of the body."""


class BoundedTransport(httpx.BaseTransport):
    """One connection at a time, kept open between requests. Not for several threads at once.

    Proxies of the environment are not used. Without a backend it connects directly.
    """

    def __init__(self, backend: httpcore.NetworkBackend | None = None) -> None:
        self._backend = _BoundedBackend(backend or httpcore.SyncBackend())
        self._pool = httpcore.ConnectionPool(max_connections=1, network_backend=self._backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        self._backend.allow(request.extensions.get(DEADLINE))
        url = request.url
        with _as_httpx_errors():
            response = self._pool.handle_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx_errors():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _BoundedBackend(httpcore.NetworkBackend):
    """Cuts the time-out of each operation down to what is left of the request's deadline."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner
        self._deadline: float | None = None

    def allow(self, seconds: float | None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def left(self, timeout: float | None, expired: type[Exception]) -> float | None:
        if self._deadline is None:
            return timeout
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise expired("timed out")
        return left if timeout is None else min(left, timeout)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self.left(timeout, httpcore.ConnectTimeout)
        zoned = host.replace("%25", "%")  # RFC 6874: the zone of an IPv6 address in a URL
        return _BoundedStream(self._inner.connect_tcp(zoned, port, left), self)


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, bounds: _BoundedBackend) -> None:
        self._inner = inner
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._bounds.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:  # httpcore also writes the empty end of a request without a body
            self._inner.write(buffer, self._bounds.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._bounds.left(timeout, httpcore.ConnectTimeout)
        return _BoundedStream(
            self._inner.start_tls(ssl_context, server_hostname, left), self._bounds
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """httpx has exceptions of the same names for those of httpcore."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
