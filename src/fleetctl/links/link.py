"""What every link can do, and how questions are sent over one and their answers are read.

Reads have a deadline and a size limit. How a link is opened is in `connect.py` and `local.py`.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Protocol

from fleetctl.errors import Exit, FleetError
from fleetctl.model.facts import Answer
from fleetctl.shell import Garbled, Question, parse, script

if TYPE_CHECKING:
    import httpx

_LOG = logging.getLogger(__name__)
_MAX_OUTPUT = 8 * 2**20
_MAX_ERRORS = 256 * 2**10


class Process(Protocol):
    """A running shell."""

    def send(self, data: bytes) -> None:
        """Write to its standard input. Ignored once the shell has ended."""

    def end_input(self) -> None: ...

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        """New data on standard output and standard error; None once the shell has ended.

        Waits up to `seconds` for data; both may be empty.
        """

    def close(self) -> None: ...


class Stream(Protocol):
    """A TCP connection: a socket, or an SSH channel."""

    def settimeout(self, timeout: float | None, /) -> None: ...

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class Link(Protocol):
    """An open connection to one node.

    An SSH link holds one of the run's slots (`--forks`), which limit how many nodes are processed
    at once. `pause` and `resume` separate the slot from the connection.
    """

    @property
    def alive(self) -> bool:
        """False once the connection is known to be gone."""

    def shell(self) -> Process:
        """Start `/bin/sh -s` on the node."""

    def tcp(self, host: str, port: int, timeout: float) -> Stream:
        """Connect from the node to an address it can reach. Raises OSError or FleetError."""

    def pause(self) -> None:
        """Give the slot back while no work is done over the link. The connection stays open."""

    def resume(self) -> None:
        """Take a slot again, and wait for a free one. No effect on a link that has its slot."""

    def close(self) -> None:
        """Close the connection and give the slot back."""


def transport(link: Link, timeout: float) -> httpx.BaseTransport:
    """HTTP requests sent from the node. `timeout` is for connecting only.

    httpx is imported by the first call, which usually is made while a node works on a script.
    """
    from fleetctl.links.http import link_transport

    return link_transport(link, timeout)


def collect(process: Process, timeout: float) -> tuple[bytes, bytes]:
    """Standard output and standard error of a shell, read until it ends; closes it.

    Both streams are read together, since a shell blocks when one of its pipes is full.
    """
    deadline = time.monotonic() + timeout
    output, errors = bytearray(), bytearray()
    try:
        while (left := deadline - time.monotonic()) > 0:
            received = process.receive(left)
            if received is None:
                return bytes(output), bytes(errors)
            output += received[0]
            errors += received[1]
            for printed, limit in ((output, _MAX_OUTPUT), (errors, _MAX_ERRORS)):
                if len(printed) > limit:
                    what = f"it printed more than {limit / 2**20:g} MiB"
                    raise FleetError(what, hint="check what its shell start-up files print")
    finally:
        process.close()
    raise FleetError(
        f"the script was not answered in {timeout:g} s",
        hint="raise --timeout if the machine is slow",
        exit_code=Exit.UNREACHABLE,
    )


def answers(process: Process, parts: list[Question], timeout: float) -> dict[str, Answer]:
    """Run these parts as one script; the record of each by its key."""
    return read_answers(process, send_questions(process, parts), timeout)


def send_questions(process: Process, parts: list[Question]) -> str:
    """Send the parts as one script; returns the nonce that `read_answers` needs."""
    nonce = secrets.token_hex(16)
    process.send(script(parts, nonce).encode())
    process.end_input()
    return nonce


def read_answers(process: Process, nonce: str, timeout: float) -> dict[str, Answer]:
    output, errors = collect(process, timeout)
    _LOG.debug("received %r and %r", output, errors)
    try:
        return parse(output, nonce)
    except Garbled as error:
        text = (output or errors).decode(errors="replace")
        last = [line for line in text.splitlines() if line.strip()][-1:]
        heard = f"; it said: {last[0]}" if last else ""
        raise FleetError(
            f"its shell did not run the script ({error}){heard}",
            hint="can this user run commands over SSH there? try: ssh … /bin/sh -c true",
            exit_code=Exit.UNREACHABLE,
        ) from None
