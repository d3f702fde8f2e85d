"""An open SSH connection: shells and TCP streams over it."""

from __future__ import annotations

import contextlib
import io
import select
from typing import Any

import paramiko

from fleetctl.errors import Exit, FleetError
from fleetctl.shell import COMMAND

_SIZE = 2**16


class SshLink:
    def __init__(self, client: paramiko.SSHClient, place: contextlib.ExitStack) -> None:
        self._client = client
        self._place = place

    def shell(self) -> SshProcess:
        try:
            channel = self._transport.open_session()
            channel.exec_command(COMMAND)
        except (OSError, EOFError, paramiko.SSHException) as error:
            what = f"the connection was lost: {error or type(error).__name__}"
            raise FleetError(what, hint="try again", exit_code=Exit.UNREACHABLE) from error
        return SshProcess(channel)

    def tcp(self, host: str, port: int, timeout: float) -> _ChannelStream:
        try:
            channel = self._transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
            )
        except paramiko.SSHException as error:
            raise FleetError(f"{host} port {port} on the node: {error}") from None
        channel.settimeout(timeout)
        return _ChannelStream(channel)

    def close(self) -> None:
        self._client.close()
        self._place.close()

    @property
    def _transport(self) -> paramiko.Transport:
        transport = self._client.get_transport()
        assert transport is not None
        return transport


class SshProcess:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._ready = select.poll()
        self._ready.register(channel.fileno(), select.POLLIN)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError, EOFError):  # it has ended; its output says why
            self._channel.sendall(data)

    def end_input(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        if not self._waiting and not self._ended:
            if self._channel.eof_received:  # all that is missing is how it ended
                self._channel.status_event.wait(seconds)
            else:
                self._ready.poll(seconds * 1000)
        # in this order: what came before the end is there once the end is
        if self._ended and not self._waiting:
            return None
        channel = self._channel
        output = channel.recv(_SIZE) if channel.recv_ready() else b""
        errors = channel.recv_stderr(_SIZE) if channel.recv_stderr_ready() else b""
        return output, errors

    @property
    def _waiting(self) -> bool:
        return self._channel.recv_ready() or self._channel.recv_stderr_ready()

    @property
    def _ended(self) -> bool:
        finished = self._channel.eof_received and self._channel.exit_status_ready()
        return bool(self._channel.closed or finished)

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.close()


class _ChannelStream:
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
