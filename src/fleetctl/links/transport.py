"""One SSH connection as paramiko makes it, with our choice of algorithms."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import Any

import paramiko

WEAK = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
_RSA = ["rsa-sha2-512", "rsa-sha2-256"]


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
