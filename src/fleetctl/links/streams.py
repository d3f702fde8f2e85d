"""What a connection to a port looks like to those who use it; sockets and SSH channels do."""

from __future__ import annotations

from typing import Any, Protocol


class Stream(Protocol):
    def sendall(self, data: bytes, /) -> Any: ...

    def makefile(self, mode: Any = ..., bufsize: Any = ..., /) -> Any: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def close(self) -> None: ...
