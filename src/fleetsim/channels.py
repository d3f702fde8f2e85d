"""What flows through a channel: between a client and its command, or through a tunnel."""

import contextlib
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import IO

import paramiko

GONE = (OSError, EOFError, paramiko.SSHException)
"""How paramiko says that the other side is not there any more."""

LOOK_MILLISECONDS = 100
_SIZE = 65536


def started(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def carry_command(
    channel: paramiko.Channel, process: subprocess.Popen[bytes], moved: Mapping[bytes, bytes]
) -> None:
    """As sshd does without a terminal: when the client goes, the command's input ends and its
    output leads nowhere, but it is not killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    pumps = [
        started(_pump, channel, process.stdout, channel.sendall),
        started(_pump, channel, process.stderr, channel.sendall_stderr),
    ]
    started(_feed, channel, process.stdin, pumps, moved)
    code = process.wait()
    with contextlib.suppress(*GONE):
        # a signal is reported as a shell would; sshd's own message for it says no more
        channel.send_exit_status(code if code >= 0 else 128 - code)
    for pump in pumps:
        pump.join()
    _close(channel)


def carry_tunnel(channel: paramiko.Channel, target: socket.socket) -> None:
    target.settimeout(None)
    for carry in (_carry_out, _carry_in):
        started(carry, channel, target)


def _close(channel: paramiko.Channel) -> None:
    with contextlib.suppress(*GONE):  # the connection went first
        channel.close()


def _pump(channel: paramiko.Channel, source: IO[bytes], send: Callable[[bytes], object]) -> None:
    ready = select.poll()
    ready.register(source, select.POLLIN)
    with source, contextlib.suppress(*GONE):
        # looking at the channel meanwhile, so that the command's first write after the client has
        # gone fails already
        while not channel.closed:
            if ready.poll(LOOK_MILLISECONDS):
                data = os.read(source.fileno(), _SIZE)
                if not data:
                    return
                send(data)


def _feed(
    channel: paramiko.Channel,
    target: IO[bytes],
    pumps: list[threading.Thread],
    moved: Mapping[bytes, bytes],
) -> None:
    held = b""
    with contextlib.suppress(*GONE), target:
        while data := channel.recv(_SIZE):
            data, held = _with_moved(held + data, moved)
            target.write(data)
            target.flush()
        target.write(held)
        if channel.closed:  # the client is gone: both directions end at once, output first
            for pump in pumps:
                pump.join()


def _with_moved(data: bytes, moved: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """What can be passed on, and the end of it that may be the beginning of a moved path."""
    for path, instead in moved.items():
        data = data.replace(path, instead)
    begun = (n for path in moved for n in range(1, len(path)) if data.endswith(path[:n]))
    end = len(data) - max(begun, default=0)
    return data[:end], data[end:]


def _carry_out(channel: paramiko.Channel, target: socket.socket) -> None:
    with contextlib.suppress(*GONE):
        while data := channel.recv(_SIZE):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR if channel.closed else socket.SHUT_WR)


def _carry_in(channel: paramiko.Channel, target: socket.socket) -> None:
    with target, contextlib.suppress(*GONE):
        while data := target.recv(_SIZE):
            channel.sendall(data)
    _close(channel)
