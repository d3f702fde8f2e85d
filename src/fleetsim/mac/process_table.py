"""The processes of a Mac as its tools show them, read from the host's /proc."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fleetsim.installed import RUNNER

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    group: int
    uid: int
    started: int
    """Seconds since the epoch."""
    state: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name that pgrep compares: from argv[0], not truncated like the kernel's name."""
        return os.path.basename(self.arguments[0])

    @property
    def command(self) -> str:
        return " ".join(self.arguments)


def processes(mark: Mapping[str, str]) -> Iterator[Process]:
    """Processes that have `mark` in their environment; with an empty mark, all with a command
    line."""
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            environment = (folder / "environ").read_bytes()
            # a cheap test first: most processes of the host do not match, and this runs often
            if not all(f"{key}={value}".encode() in environment for key, value in mark.items()):
                continue
            found = _read(folder, environment)
        except OSError:
            continue  # ended in the meantime, or not readable for us
        if found.arguments and mark.items() <= found.environment.items():
            yield found


def _read(folder: Path, environment: bytes) -> Process:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    pairs = environment.decode(errors="replace").split("\0")
    arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return Process(
        pid=int(folder.name),
        parent=int(fields[1]),
        group=int(fields[2]),
        uid=folder.stat().st_uid,
        started=_boot_time() + int(fields[19]) // _TICKS,
        state="S" if fields[0] in "SDI" else fields[0],
        arguments=tuple(_as_program(arguments)),
        environment=dict(pair.split("=", 1) for pair in pairs if "=" in pair),
    )


def _as_program(arguments: list[str]) -> list[str]:
    """Strip the interpreter from the arguments of a simulated program, which is a Python script."""
    if arguments[1:2] != ["-IS"]:
        return arguments
    is_program = arguments[2].endswith(RUNNER)
    return arguments[5:] if is_program else arguments[2:]


def _boot_time() -> int:
    return round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))
