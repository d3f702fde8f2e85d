"""A simulated Mac in a HOME, without root: launchd, its tools, and logins at the screen."""

import uuid
from pathlib import Path
from typing import Any

from fleetsim.launchd.launchd import Launchd
from fleetsim.launchd.site import Site, User
from fleetsim.launchd.variant import Variant
from fleetsim.mac import facts
from fleetsim.mac.brew import Brew
from fleetsim.mac.process_table import Process, processes
from fleetsim.mac.tools import Toolbox
from fleetsim.machine import Machine, Place
from fleetsim.ollama.app import settings_database, write_app_settings
from fleetsim.ollama.behaviour import read_behaviour
from fleetsim.ollama.settings import read_settings
from fleetsim.tools.calls import ToolServer, Toolset, write_constant

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")


class MacOS:
    """An `OperatingSystem`."""

    def __init__(self, place: Place, variant: Variant, brew: str) -> None:
        """`brew` is the version of Homebrew, if it is installed."""
        self._place = place
        self._boot = ""
        self.user = User(place.user, place.account, place.home, {**place.identity, **self.mark})
        self.launchd = Launchd(self._site(), variant)
        self.brew = Brew(place.home / "homebrew", brew, self.launchd)

    # --- OperatingSystem ---

    @property
    def mark(self) -> dict[str, str]:
        """The per-user folder for temporary files, unique to this machine."""
        return {"TMPDIR": f"{self._place.runtime}/T/"}

    @property
    def session_environment(self) -> dict[str, str]:
        return {
            **self.user.identity,
            # as in ~/.zshenv of a user with a Homebrew in the home folder
            "PATH": f"{self._path}:{self.brew.prefix}/bin",
            "SSH_CONNECTION": "127.0.0.1 0 127.0.0.1 22",
            "SSH_CLIENT": "127.0.0.1 0 22",
        }

    @property
    def replaced_paths(self) -> dict[bytes, bytes]:
        """Paths that the host has and a Mac lacks."""
        return {path: b"/nonexistent" + path for path in (b"/proc/", b"/etc/os-release")}

    def boot(self) -> None:
        self._boot = str(uuid.uuid4()).upper()
        temporary = Path(self.mark["TMPDIR"])
        temporary.mkdir(mode=0o700)
        self._place.account.own(temporary)
        self.launchd.boot()

    def session_opened(self) -> None:
        self.launchd.open_background(self.user)

    def session_closed(self) -> None:
        """The user's domain stays open."""

    def shut_down(self, seconds: float) -> None:
        self.launchd.shut_down(seconds)

    # --- tools ---

    def install_tools(self, tool_server: ToolServer, python: str) -> None:
        place = self._place
        tools = Toolbox(
            name=place.name,
            launchd=self.launchd,
            table=lambda: processes(self.mark),
            configured=self._configured_address,
            boot=lambda: self._boot,
            state=place.folder,
            refused=place.refused,
            applications=(place.home / "Applications",),
            interfaces=facts.INTERFACES,
            temporary=self.mark["TMPDIR"],
        )
        tools.install(tool_server, python, place.tools, self._same)
        # the user has another name on the host
        write_constant(place.tools, "id", facts.identity(self.user), place.refused)
        if self.brew.prefix.exists():
            tool_server.install(Toolset({"brew": self.brew}, place.refuse), self.brew.bin, python)

    # --- private ---

    @property
    def _same(self) -> Path:
        return self._place.folder / "usr-bin"

    @property
    def _path(self) -> str:
        """The PATH in place of /usr/bin:/bin:/usr/sbin:/sbin, which hold the host's tools."""
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
        """Plists name system programs by their path on a Mac; return the path on this machine."""
        folder, _, name = path.rpartition("/")
        tool = self._place.tools / name
        return str(tool) if folder in _SYSTEM_FOLDERS and tool.exists() else path

    def _configured_address(self, process: Process, host: str, port: int) -> tuple[str, int]:
        ports = read_behaviour(str(self._place.behaviour)).ports
        numbers = {real: int(configured) for configured, real in ports.items()}
        if port not in numbers:
            return host, port
        return read_settings(process.environment).host, numbers[port]


class Mac(Machine):
    def __init__(
        self, place: Place, system: MacOS, identity_file: Path, *, auto_login: bool = False
    ) -> None:
        super().__init__(place, system, identity_file)
        self._auto_login = auto_login
        self._macos = system

    @property
    def uid(self) -> int:
        return self._macos.user.uid

    def start(self) -> None:
        super().start()
        if self._auto_login:
            self.log_in()

    def log_in(self) -> None:
        """Log in at the screen: opens the domain gui/UID and starts its agents."""
        self._macos.launchd.log_in(self._macos.user)

    def log_out(self) -> None:
        """Log out at the screen: ends the agents of gui/UID; user/UID stays."""
        self._macos.launchd.log_out(self._macos.user)

    def own(self, path: Path) -> None:
        """Make the user the owner of a file written by a test."""
        self._place.account.own(path)

    def set_app(self, **settings: Any) -> None:
        """Change settings of Ollama.app; they take effect at the next start of its server."""
        home = str(self.home)
        write_app_settings(home, settings)
        self._place.account.own_all(Path(settings_database(home)).parent)

    def vary(self, **changes: Any) -> None:
        """Change fields of its `Variant`."""
        self._macos.launchd.vary(**changes)
