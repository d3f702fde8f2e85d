"""What a connection to a port looks like to those who use it: a socket, whatever carries it."""

from __future__ import annotations

import io
from typing import Any, Protocol

import paramiko


class Stream(Protocol):
    def sendall(self, data: bytes, /) -> Any: ...

    def makefile(self, mode: Any = ..., bufsize: Any = ..., /) -> Any: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def close(self) -> None: ...


class ChannelStream:
    """An SSH channel as a socket; paramiko's own file objects cannot be read line by line."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.sendall = channel.sendall
        self.settimeout = channel.settimeout
        self.close = channel.close

    def makefile(self, mode: str = "rb", bufsize: int = -1) -> io.BufferedReader:
        return io.BufferedReader(_Received(self._channel))


class _Received(io.RawIOBase):
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._channel.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)
