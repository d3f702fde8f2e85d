"""Connections to nodes: over SSH, or to this machine itself, with the same methods."""

from __future__ import annotations

import sys
from typing import Protocol

# Paramiko loads `invoke` for `Match exec` in ssh_config only; links/route.py does where it is used.
if "invoke" not in sys.modules:
    sys.modules["invoke"] = None  # type: ignore[assignment]
    import paramiko  # noqa: F401

    del sys.modules["invoke"]

from fleetctl.links.exchange import Process, Stream

__all__ = ["Link", "Process"]


class Link(Protocol):
    """One open connection to one node."""

    def shell(self) -> Process:
        """A new `/bin/sh -s` on the node."""

    def tcp(self, host: str, port: int, timeout: float) -> Stream:
        """A connection from the node to an address that it can reach."""

    def close(self) -> None: ...
