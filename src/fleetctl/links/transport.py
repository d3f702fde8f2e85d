"""What carries an SSH connection: sockets that answer at once, and our choice of algorithms."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections import deque
from collections.abc import Iterable
from typing import Any

import paramiko

WEAK = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
_RSA = ["rsa-sha2-512", "rsa-sha2-256"]

# A vanished peer is noticed after three keep-alives of five seconds.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}


class Transport(paramiko.Transport):
    """Keeps what it could tell in detail until it is asked why it failed.

    To write all of it into the log would take a fifth of the time of a run.
    """

    def __init__(self, sock: Any, *, known: Iterable[str], **options: Any) -> None:
        self.details: deque[str] = deque(maxlen=60)
        super().__init__(sock, **options)
        # The server may have several keys: the types of those that are known come first.
        security = self.get_security_options()
        wanted = [kind for name in known for kind in (_RSA if name == "ssh-rsa" else [name])]
        usable = [kind for kind in wanted if kind in security.key_types]
        others = [kind for kind in security.key_types if kind not in usable]
        security.key_types = (*usable, *others)
        # GCM carries its own check; paramiko compares the others' byte by byte, in Python.
        security.ciphers = sorted(security.ciphers, key=lambda name: "gcm" not in name)

    def _log(self, level: int, msg: Any, *args: Any) -> None:
        if level > logging.DEBUG:
            super()._log(level, msg, *args)  # type: ignore[misc]
        else:
            self.details.append(str(msg) % args if args else str(msg))


class _PromptSocket(socket.socket):
    """Acknowledges at once. Linux forgets TCP_QUICKACK, so it is set again after each read.

    Nagle's algorithm on one side and delayed acknowledgements on the other cost 40 ms twice in
    each connection otherwise.
    """

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        with contextlib.suppress(AttributeError, OSError):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """To a server that has begun to speak, as SSH servers do before they are asked."""
    plain = socket.create_connection((host, port), timeout)
    prompt = _PromptSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
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
