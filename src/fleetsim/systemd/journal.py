"""The machine's journal: one JSON object per line, on disk, so that it survives a reboot."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    time: float
    boot: str
    unit: str
    invocation: str
    pid: int
    text: str
    process: str
    """The writer: the name of the unit's program, or `systemd`."""

    @property
    def by_manager(self) -> bool:
        return self.process == "systemd"


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> None:
        line = json.dumps(asdict(entry)) + "\n"
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line)

    def entries(self) -> Iterator[Entry]:
        if not self._path.exists():
            return
        with self._lock:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            yield Entry(**json.loads(line))


def entry(
    boot: str, unit: str, invocation: str, text: str, pid: int, process: str = "systemd"
) -> Entry:
    return Entry(time.time(), boot, unit, invocation, pid, text, process)
