"""The tools of a Mac, both in a HOME and on a node of the lab."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetsim.launchd.launchd import Launchd
from fleetsim.mac import facts
from fleetsim.mac.facts import Pmset
from fleetsim.mac.posix_tools import install_posix_tools
from fleetsim.tools.calls import Tool, ToolServer, Toolset, write_constant
from fleetsim.tools.files import Stat, plutil, sqlite3_tool
from fleetsim.tools.launchctl import Launchctl
from fleetsim.tools.open import Open
from fleetsim.tools.ps import Pgrep, Pkill, Ps, Table
from fleetsim.tools.sockets import ConfiguredAddress, Lsof, Netstat


@dataclass(frozen=True, slots=True)
class Toolbox:
    name: str
    """Name of the machine."""
    launchd: Launchd
    table: Table
    configured: ConfiguredAddress
    boot: Callable[[], str]
    """The boot session UUID, different after each boot."""
    state: Path
    refused: Path
    applications: tuple[Path, ...]
    interfaces: str
    """Output of `ifconfig -a`."""
    temporary: str

    def install(self, tool_server: ToolServer, python: str, folder: Path, same: Path) -> None:
        """Install the tools into `folder`, and links to unguarded host tools into `same`."""
        tool_server.install(Toolset(self._tools(), self.launchd.site.refuse), folder, python)
        for name, answers in facts.constant_tools(self.name, self.launchd.variant).items():
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
            "lsof": Lsof(self.table, self.configured, names),
            "netstat": Netstat(self.table, self.configured),
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
