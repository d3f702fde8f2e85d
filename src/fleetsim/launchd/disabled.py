"""Which labels are disabled: a plist for each user, which outlives reboots and the jobs' plists."""

import plistlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DisabledStore:
    folder: Path

    def all(self, owner: str) -> dict[str, bool]:
        """By label, whether it is disabled; a label that was never switched is missing."""
        file = self._file(owner)
        if not file.exists():
            return {}
        found: dict[str, bool] = plistlib.loads(file.read_bytes())
        return found

    def set(self, owner: str, label: str, disabled: bool) -> None:
        values = {**self.all(owner), label: disabled}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file(owner).write_bytes(plistlib.dumps(values))

    def _file(self, owner: str) -> Path:
        return self.folder / f"disabled.{owner}.plist"
