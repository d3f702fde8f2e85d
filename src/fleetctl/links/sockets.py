"""TCP sockets that do not wait for each other."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

# A vanished peer is noticed after three keep-alives of five seconds.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}


class PromptSocket(socket.socket):
    """Acknowledges at once. Linux forgets TCP_QUICKACK, so it is set again after each read.

    Nagle's algorithm on one side and delayed acknowledgements on the other cost 40 ms twice in
    each connection otherwise.
    """

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        with contextlib.suppress(AttributeError, OSError):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def connect(host: str, port: int, timeout: float) -> PromptSocket:
    """To a server that has begun to speak, as SSH servers do before they are asked."""
    plain = socket.create_connection((host, port), timeout)
    prompt = PromptSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
    prompt.settimeout(timeout)
    prompt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    prompt.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        with contextlib.suppress(AttributeError, OSError):
            prompt.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        prompt.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        prompt.close()
        raise OSError("no SSH banner") from None
    except OSError:
        prompt.close()
        raise
    return prompt
