"""An open SSH connection: shells and TCP connections over it."""

from __future__ import annotations

import contextlib
import select
import threading

import paramiko
from fabric import Connection

from fleetctl.errors import Exit, FleetError
from fleetctl.shell import COMMAND

_SIZE = 2**16
_KEEPALIVE_SECONDS = 15
"""Routers drop idle connections after minutes; a user may read a plan for longer."""


class Slot:
    """One of a limited number of slots. `take` and `release` may be repeated."""

    def __init__(self, slots: threading.Semaphore) -> None:
        self._slots = slots
        self._taken = False

    def take(self) -> None:
        if not self._taken:
            self._slots.acquire()
            self._taken = True

    def release(self) -> None:
        if self._taken:
            self._taken = False
            self._slots.release()


class SshLink:
    def __init__(self, connection: Connection, slot: Slot) -> None:
        self.connection = connection
        self._slot = slot
        self._transport: paramiko.Transport = connection.transport
        self._transport.set_keepalive(_KEEPALIVE_SECONDS)

    @property
    def alive(self) -> bool:
        return self._transport.is_active()

    def shell(self) -> SshProcess:
        try:
            channel = self._transport.open_session()
            channel.exec_command(COMMAND)
        except (OSError, EOFError, paramiko.SSHException) as error:
            what = f"the connection was lost: {error or type(error).__name__}"
            raise FleetError(what, hint="try again", exit_code=Exit.UNREACHABLE) from error
        return SshProcess(channel)

    def tcp(self, host: str, port: int, timeout: float) -> paramiko.Channel:
        try:
            channel = self._transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
            )
        except paramiko.SSHException as error:
            raise FleetError(f"{host} port {port} on the node: {error}") from None
        channel.settimeout(timeout)
        return channel

    def pause(self) -> None:
        self._slot.release()

    def resume(self) -> None:
        self._slot.take()

    def close(self) -> None:
        try:
            close_connection(self.connection)
        finally:
            self._slot.release()


def close_connection(connection: Connection) -> None:
    """Fabric closes nothing if the peer has hung up; the client still holds the SSH agent."""
    connection.close()
    connection.client.close()


class SshProcess:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._ready = select.poll()
        self._ready.register(channel.fileno(), select.POLLIN)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError, EOFError):  # the shell has ended; its output tells why
            self._channel.sendall(data)

    def end_input(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        if not self._has_data and not self._ended:
            if self._channel.eof_received:  # only the exit status is missing
                self._channel.status_event.wait(seconds)
            else:
                self._ready.poll(seconds * 1000)
        # `_ended` first: data that arrived before the end is then visible to `_has_data`
        if self._ended and not self._has_data:
            return None
        channel = self._channel
        output = channel.recv(_SIZE) if channel.recv_ready() else b""
        errors = channel.recv_stderr(_SIZE) if channel.recv_stderr_ready() else b""
        return output, errors

    @property
    def _has_data(self) -> bool:
        return self._channel.recv_ready() or self._channel.recv_stderr_ready()

    @property
    def _ended(self) -> bool:
        finished = self._channel.eof_received and self._channel.exit_status_ready()
        return bool(self._channel.closed or finished)

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.close()
