"""macOS as the operating system of a simulated machine in a HOME, without root: launchd, and the
tools through which it is asked."""

import uuid
from collections.abc import Iterator
from pathlib import Path

from fleetctl.sim.launchd.launchd import Launchd
from fleetctl.sim.launchd.site import Site, User
from fleetctl.sim.launchd.variant import Variant
from fleetctl.sim.mac import facts
from fleetctl.sim.mac.brew import Brew
from fleetctl.sim.mac.posix_tools import install_posix_tools
from fleetctl.sim.mac.process_table import Process, processes
from fleetctl.sim.machine import Place
from fleetctl.sim.ollama.behaviour import read_behaviour
from fleetctl.sim.ollama.settings import read_settings
from fleetctl.sim.tools.calls import Bench, Switchboard, Tool
from fleetctl.sim.tools.constant import write_constant
from fleetctl.sim.tools.launchctl import Launchctl
from fleetctl.sim.tools.open import Open
from fleetctl.sim.tools.plutil import plutil
from fleetctl.sim.tools.pmset import Pmset
from fleetctl.sim.tools.ps import Pgrep, Pkill, Ps
from fleetctl.sim.tools.sockets import Lsof, Netstat
from fleetctl.sim.tools.sqlite3 import sqlite3_tool
from fleetctl.sim.tools.stat import Stat

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")


class MacOS:
    """An `OperatingSystem`."""

    def __init__(self, place: Place, variant: Variant, brew: str) -> None:
        """`brew` is the version of Homebrew, should it be there."""
        self._place = place
        self._boot = ""
        self.user = User(place.user, place.account, place.home, {**place.identity, **self.mark})
        self.launchd = Launchd(self._site(), variant)
        self.brew = Brew(place.home / "homebrew", brew, self.launchd)

    # --- as an operating system ---

    @property
    def mark(self) -> dict[str, str]:
        """The folder that every user of a Mac has for temporary files."""
        return {"TMPDIR": f"{self._place.runtime}/T/"}

    @property
    def session_environment(self) -> dict[str, str]:
        return {
            **self.user.identity,
            # as somebody with a Homebrew of their own has it in ~/.zshenv
            "PATH": f"{self._path}:{self.brew.prefix}/bin",
            "SSH_CONNECTION": "127.0.0.1 0 127.0.0.1 22",
            "SSH_CLIENT": "127.0.0.1 0 22",
        }

    def boot(self) -> None:
        self._boot = str(uuid.uuid4()).upper()
        temporary = Path(self.mark["TMPDIR"])
        temporary.mkdir(mode=0o700)
        self._place.account.own(temporary)
        self.launchd.boot()

    def session_opened(self) -> None:
        self.launchd.open_background(self.user)

    def session_closed(self) -> None:
        """The user's domain stays."""

    def shut_down(self, seconds: float) -> None:
        self.launchd.shut_down(seconds)

    # --- its tools ---

    def install_tools(self, switchboard: Switchboard, python: str) -> None:
        place, variant = self._place, self.launchd.variant
        refused = place.refused
        switchboard.install(Bench(self._tools(), place.refuse), place.tools, python)
        if self.brew.prefix.exists():
            switchboard.install(Bench({"brew": self.brew}, place.refuse), self.brew.bin, python)
        tables = {**facts.constants(place.name, variant), "id": facts.identity(self.user)}
        for name, answers in tables.items():
            write_constant(place.tools, name, answers, refused)
        filled = {"tmp": self.mark["TMPDIR"].rstrip("/"), "interfaces": facts.INTERFACES}
        install_posix_tools(place.tools, self._same, refused, filled)

    def _tools(self) -> dict[str, Tool]:
        names = {0: "root", self.user.uid: self.user.name}
        pgrep = Pgrep(self._table, names)
        return {
            "launchctl": Launchctl(self.launchd),
            "plutil": plutil,
            "ps": Ps(self._table, names),
            "pgrep": pgrep,
            "pkill": Pkill(pgrep),
            "lsof": Lsof(self._table, self._told, names),
            "netstat": Netstat(self._table, self._told),
            "stat": Stat(names, self._console),
            "sysctl": facts.Sysctl(lambda: self._boot, self.launchd.variant),
            "dscl": facts.Dscl((self.user,)),
            "scutil": facts.Scutil(self._place.name),
            "fdesetup": facts.fdesetup,
            "pmset": Pmset(self._place.folder / "power.json"),
            "sqlite3": sqlite3_tool,
            "open": Open(self.launchd, (self._place.home / "Applications",), self._table),
        }

    # --- inside ---

    @property
    def _same(self) -> Path:
        return self._place.folder / "usr-bin"

    @property
    def _path(self) -> str:
        """Instead of /usr/bin:/bin:/usr/sbin:/sbin, which are the host's."""
        return f"{self._place.tools}:{self._same}"

    def _site(self) -> Site:
        place = self._place
        return Site(
            users=(self.user,),
            daemons=place.folder / "Library/LaunchDaemons",
            agents=place.folder / "Library/LaunchAgents",
            login_items=place.folder / "login-items",
            store=place.folder / "launchd",
            path=self._path,
            program=self._program,
            refuse=place.refuse,
            mark=self.mark,
        )

    def _program(self, path: str) -> str:
        """A plist names programs of the system by their path, and ours are elsewhere."""
        folder, _, name = path.rpartition("/")
        tool = self._place.tools / name
        return str(tool) if folder in _SYSTEM_FOLDERS and tool.exists() else path

    def _table(self) -> Iterator[Process]:
        return processes(self.mark)

    def _console(self) -> int:
        user = self.launchd.console
        return user.uid if user else 0

    def _told(self, process: Process, host: str, port: int) -> tuple[str, int]:
        ports = read_behaviour(str(self._place.behaviour)).ports
        numbers = {real: int(told) for told, real in ports.items()}
        if port not in numbers:
            return host, port
        return read_settings(process.environment).host, numbers[port]
