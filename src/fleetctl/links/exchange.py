"""Shells and streams, whatever carries them; what a shell prints, in bounds of time and size."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from fleetctl.errors import Exit, FleetError


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float
    output: int = 8 * 2**20
    errors: int = 256 * 2**10


@dataclass(frozen=True, slots=True)
class Output:
    output: bytes
    errors: bytes


class Process(Protocol):
    """A running shell. `receive` gives what has come on both streams, None when it has ended."""

    def send(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None: ...

    def close(self) -> None: ...


class Stream(Protocol):
    """A connection to a port: a socket, as far as its users need one."""

    def sendall(self, data: bytes, /) -> Any: ...

    def makefile(self, mode: Any = ..., bufsize: Any = ..., /) -> Any: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def close(self) -> None: ...


def collect(process: Process, limits: Limits) -> Output:
    """All that a shell prints until it ends.

    Both streams are read together, or a node that fills one of them would wait for ever.
    """
    deadline = time.monotonic() + limits.seconds
    output, errors = bytearray(), bytearray()
    try:
        while (left := deadline - time.monotonic()) > 0:
            received = process.receive(left)
            if received is None:
                return Output(bytes(output), bytes(errors))
            output += received[0]
            errors += received[1]
            for printed, most in ((output, limits.output), (errors, limits.errors)):
                if len(printed) > most:
                    what = f"it printed more than {most / 2**20:g} MiB"
                    raise FleetError(what, hint="look at what its shell start-up files print")
    finally:
        process.close()
    raise FleetError(
        f"the script was not answered in {limits.seconds:g} s",
        hint="raise --timeout if the machine is slow",
        exit_code=Exit.UNREACHABLE,
    )
