"""Copies bytes through an SSH channel: between a client and its command, or through a tunnel."""

import contextlib
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import IO

import paramiko

DISCONNECTED = (OSError, EOFError, paramiko.SSHException)
"""Raised by paramiko when the other end has disconnected."""

POLL_MILLISECONDS = 100
_SIZE = 65536


def start_thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def carry_command(
    channel: paramiko.Channel,
    process: subprocess.Popen[bytes],
    replaced_paths: Mapping[bytes, bytes],
) -> None:
    """Connect a running command to its channel until it exits. As with sshd without a terminal:
    when the client disconnects, the command's input ends and its output is discarded, but it is not
    killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    pumps = [
        start_thread(_pump, channel, process.stdout, channel.sendall),
        start_thread(_pump, channel, process.stderr, channel.sendall_stderr),
    ]
    start_thread(_feed, channel, process.stdin, pumps, replaced_paths)
    code = process.wait()
    with contextlib.suppress(*DISCONNECTED):
        # 128 + n, as a shell reports a signal; sshd's own message for it carries no more
        channel.send_exit_status(code if code >= 0 else 128 - code)
    for pump in pumps:
        pump.join()
    _close(channel)


def carry_tunnel(channel: paramiko.Channel, target: socket.socket) -> None:
    target.settimeout(None)
    for carry in (_carry_out, _carry_in):
        start_thread(carry, channel, target)


def _close(channel: paramiko.Channel) -> None:
    with contextlib.suppress(*DISCONNECTED):  # already disconnected
        channel.close()


def _pump(channel: paramiko.Channel, source: IO[bytes], send: Callable[[bytes], object]) -> None:
    ready = select.poll()
    ready.register(source, select.POLLIN)
    with source, contextlib.suppress(*DISCONNECTED):
        # polls, so that it notices when the client disconnects: then the command's first write
        # afterwards fails
        while not channel.closed:
            if ready.poll(POLL_MILLISECONDS):
                data = os.read(source.fileno(), _SIZE)
                if not data:
                    return
                send(data)


def _feed(
    channel: paramiko.Channel,
    target: IO[bytes],
    pumps: list[threading.Thread],
    replaced_paths: Mapping[bytes, bytes],
) -> None:
    held = b""
    with contextlib.suppress(*DISCONNECTED), target:
        while data := channel.recv(_SIZE):
            data, held = _replace_paths(held + data, replaced_paths)
            target.write(data)
            target.flush()
        target.write(held)
        if channel.closed:  # the client disconnected: close the output first, then the input
            for pump in pumps:
                pump.join()


def _replace_paths(data: bytes, replaced_paths: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """Replace paths in what a client sends. Returns what can be passed on, and a rest that may be
    the beginning of such a path."""
    for path, instead in replaced_paths.items():
        data = data.replace(path, instead)
    begun = (n for path in replaced_paths for n in range(1, len(path)) if data.endswith(path[:n]))
    end = len(data) - max(begun, default=0)
    return data[:end], data[end:]


def _carry_out(channel: paramiko.Channel, target: socket.socket) -> None:
    with contextlib.suppress(*DISCONNECTED):
        while data := channel.recv(_SIZE):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR if channel.closed else socket.SHUT_WR)


def _carry_in(channel: paramiko.Channel, target: socket.socket) -> None:
    with target, contextlib.suppress(*DISCONNECTED):
        while data := target.recv(_SIZE):
            channel.sendall(data)
    _close(channel)
