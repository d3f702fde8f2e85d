"""The link to this machine: shells without SSH."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess

_SIZE = 2**16


class LocalLink:
    """Always alive, and holds no slot."""

    alive = True

    def shell(self) -> LocalProcess:
        return LocalProcess()

    def tcp(self, host: str, port: int, timeout: float) -> socket.socket:
        return socket.create_connection((host, port), timeout)

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class LocalProcess:
    """Runs in its own session, so that Ctrl-C at the terminal does not end it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._open = selectors.DefaultSelector()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            self._open.register(stream, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def end_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        if not self._open.get_map():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return None
        received = {self._process.stdout: b"", self._process.stderr: b""}
        for key, _ in self._open.select(seconds):
            data = os.read(key.fd, _SIZE)
            if not data:
                self._open.unregister(key.fileobj)
            received[key.fileobj] = data  # type: ignore[index]
        return received[self._process.stdout], received[self._process.stderr]

    def close(self) -> None:
        self._open.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
