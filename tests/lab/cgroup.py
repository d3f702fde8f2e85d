"""A control group for each process that the lab starts, so that it can be found again.

Each node needs one anyway: two containers in one group would mix up their services. After a crash
the group still lists the pids of the lab's processes, and no others."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.lab.command import LabError

SECONDS_TO_END = 30
NO_SIGNAL = 0  # only checks whether the process exists

JOIN = """
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done
shift
"$@" &
"""


@cache
def hierarchies() -> tuple[Path, ...]:
    """The hierarchies in which systemd tracks processes: version 2, and its own of version 1 if
    mounted."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, system = line.partition(" - ")
        if system.startswith("cgroup2 ") or "name=systemd" in system.split(",")[-1]:
            found.append(Path(mount.split()[4]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Cgroup:
    name: str

    @property
    def folders(self) -> list[Path]:
        return [hierarchy / self.name for hierarchy in hierarchies()]

    def start(self, *argv: str | Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        """Start a process that outlives this one, in the group."""
        for folder in self.folders:
            folder.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            subprocess.run(
                ["/bin/sh", "-ec", JOIN, "join", *self.folders, "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                check=True,
            )

    def pids(self) -> set[int]:
        found = set[int]()
        for path, _, _ in (step for folder in self.folders for step in os.walk(folder)):
            with suppress(OSError):  # the group was removed in the meantime
                found.update(map(int, (Path(path) / "cgroup.procs").read_text().split()))
        return found

    def exists(self) -> bool:
        return any(folder.exists() for folder in self.folders)

    def freeze(self) -> None:
        """Freeze all processes of the group, so that none reacts to the end of another."""
        signal_all(self.pids(), signal.SIGSTOP)

    def end(self, how: int = signal.SIGKILL) -> None:
        """Signal all processes of the group and wait until they have ended; a missing group is not
        an error."""
        signalled = set[int]()
        deadline = time.monotonic() + SECONDS_TO_END
        while pids := self.pids():
            if time.monotonic() > deadline:
                raise LabError(f"the processes {pids} of {self.name} do not end")
            signal_all(pids - signalled, how)
            signalled |= pids
            time.sleep(0.01)

    def remove(self) -> None:
        self.end()
        for folder in self.folders:
            for path, _, _ in os.walk(folder, topdown=False):
                Path(path).rmdir()


def signal_all(pids: set[int], how: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, how)
