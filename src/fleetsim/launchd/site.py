"""launchd's view of its machine: folders, users, programs, and the store of disabled labels."""

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
    """HOME, USER, LOGNAME, SHELL and TMPDIR, which launchd sets from the account."""

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
    """A folder of links to the plists of login items that applications have registered."""
    store: Path
    """The folder of the `DisabledStore`, which survives reboots."""
    path: str
    """The PATH of jobs: the equivalent of /usr/bin:/bin:/usr/sbin:/sbin on this machine."""
    program: Callable[[str], str]
    """Maps the path of a system program on a Mac to its path on this machine."""
    refuse: Callable[[str], None]
    mark: Mapping[str, str]
    """Variables added to the environment of every job, to find its processes."""

    def user(self, uid: int) -> User | None:
        return next((user for user in self.users if user.uid == uid), None)

    def named(self, name: str) -> User | None:
        return next((user for user in self.users if user.name == name), None)


@dataclass(frozen=True, slots=True)
class DisabledStore:
    """The disabled labels: one plist per user, which survives reboots and the removal of jobs."""

    folder: Path

    def all(self, owner: str) -> dict[str, bool]:
        """Whether each label is disabled; labels that were never enabled or disabled are
        missing."""
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
