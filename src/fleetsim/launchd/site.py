"""The folders, users and programs that launchd finds on its machine, and its store of disabled labels."""

import plistlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fleetsim.processes import Account


@dataclass(frozen=True, slots=True)
class User:
    name: str
    account: Account
    home: Path
    identity: Mapping[str, str]
    """HOME, USER, LOGNAME, SHELL and TMPDIR, which launchd takes from the account."""

    @property
    def uid(self) -> int:
        return self.account.uid

    @property
    def agents(self) -> Path:
        return self.home / "Library/LaunchAgents"


@dataclass(frozen=True, slots=True)
class Site:
    users: tuple[User, ...]
    daemons: Path
    """/Library/LaunchDaemons"""
    agents: Path
    """/Library/LaunchAgents"""
    login_items: Path
    """A folder of links to the plists that applications have registered for the login."""
    store: Path
    """Where it is written down what is disabled, over reboots."""
    path: str
    """/usr/bin:/bin:/usr/sbin:/sbin, wherever that is on this machine."""
    program: Callable[[str], str]
    """Where a program of the system really is, by its path on a Mac."""
    refuse: Callable[[str], None]
    mark: Mapping[str, str]
    """In the environment of every job, whatever its plist says."""

    def user(self, uid: int) -> User | None:
        return next((user for user in self.users if user.uid == uid), None)

    def named(self, name: str) -> User | None:
        return next((user for user in self.users if user.name == name), None)


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
