"""The tools of a Mac, wherever it is installed: those that know something, and their guards."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetsim.launchd.launchd import Launchd
from fleetsim.mac import facts
from fleetsim.mac.facts import Pmset
from fleetsim.mac.posix_tools import install_posix_tools
from fleetsim.tools.calls import Bench, Switchboard, Tool, write_constant
from fleetsim.tools.files import Stat, plutil, sqlite3_tool
from fleetsim.tools.launchctl import Launchctl
from fleetsim.tools.open import Open
from fleetsim.tools.ps import Pgrep, Pkill, Ps, Table
from fleetsim.tools.sockets import Lsof, Netstat, Told


@dataclass(frozen=True, slots=True)
class Toolbox:
    name: str
    """Of the machine."""
    launchd: Launchd
    table: Table
    told: Told
    boot: Callable[[], str]
    """A number that is another one after each boot."""
    state: Path
    refused: Path
    applications: tuple[Path, ...]
    interfaces: str
    """What `ifconfig -a` says."""
    temporary: str

    def install(self, switchboard: Switchboard, python: str, folder: Path, same: Path) -> None:
        """Into `folder`; links to what is the same everywhere into `same`."""
        switchboard.install(Bench(self._tools(), self.launchd.site.refuse), folder, python)
        for name, answers in facts.constants(self.name, self.launchd.variant).items():
            write_constant(folder, name, answers, self.refused)
        filled = {"tmp": self.temporary.rstrip("/"), "interfaces": self.interfaces}
        install_posix_tools(folder, same, self.refused, filled)

    def _tools(self) -> dict[str, Tool]:
        launchd, users = self.launchd, self.launchd.site.users
        names = {0: "root", **{user.uid: user.name for user in users}}
        pgrep = Pgrep(self.table, names)
        return {
            "launchctl": Launchctl(launchd),
            "plutil": plutil,
            "ps": Ps(self.table, names),
            "pgrep": pgrep,
            "pkill": Pkill(pgrep),
            "lsof": Lsof(self.table, self.told, names),
            "netstat": Netstat(self.table, self.told),
            "stat": Stat(names, self._console),
            "sysctl": facts.Sysctl(self.boot, launchd.variant),
            "dscl": facts.Dscl(users),
            "scutil": facts.Scutil(self.name),
            "fdesetup": facts.fdesetup,
            "socketfilterfw": facts.firewall,
            "pmset": Pmset(self.state / "power.json"),
            "sqlite3": sqlite3_tool,
            "open": Open(launchd, self.applications, self.table),
        }

    def _console(self) -> int:
        user = self.launchd.console
        return user.uid if user else 0
