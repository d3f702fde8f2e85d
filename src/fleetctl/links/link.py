"""Shells, whatever carries them, and what they answer, in bounds of time and size."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Protocol

from fleetctl.errors import Exit, FleetError
from fleetctl.shell import Garbled, Part, Record, parse, script

_LOG = logging.getLogger(__name__)
_MOST_OUTPUT = 8 * 2**20
_MOST_ERRORS = 256 * 2**10


class Process(Protocol):
    """A running shell. `receive` gives what has come on both streams, None when it has ended."""

    def send(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None: ...

    def close(self) -> None: ...


def collect(process: Process, timeout: float) -> tuple[bytes, bytes]:
    """All that a shell prints until it ends, on standard output and standard error.

    Both streams are read together, or a node that fills one of them would wait for ever.
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
            for printed, most in ((output, _MOST_OUTPUT), (errors, _MOST_ERRORS)):
                if len(printed) > most:
                    what = f"it printed more than {most / 2**20:g} MiB"
                    raise FleetError(what, hint="look at what its shell start-up files print")
    finally:
        process.close()
    raise FleetError(
        f"the script was not answered in {timeout:g} s",
        hint="raise --timeout if the machine is slow",
        exit_code=Exit.UNREACHABLE,
    )


def answers(process: Process, parts: list[Part], timeout: float) -> dict[str, Record]:
    """What the node says to these questions."""
    return records(process, send(process, parts), timeout)


def send(process: Process, parts: list[Part]) -> str:
    """Asks; the answers will come with the nonce."""
    nonce = secrets.token_hex(16)
    process.send(script(parts, nonce).encode())
    process.end_input()
    return nonce


def records(process: Process, nonce: str, timeout: float) -> dict[str, Record]:
    output, errors = collect(process, timeout)
    _LOG.debug("said %r and %r", output, errors)
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
