"""A simulated Mac: a machine with a screen at which somebody may be logged in."""

from pathlib import Path
from typing import Any

from fleetsim.mac.system import MacOS
from fleetsim.machine import Machine, Place
from fleetsim.ollama import app_settings


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
        """At the screen: the domain gui/UID is there, and its agents start."""
        self._macos.launchd.log_in(self._macos.user)

    def log_out(self) -> None:
        """The agents of the screen end; user/UID stays."""
        self._macos.launchd.log_out(self._macos.user)

    def own(self, path: Path) -> None:
        """Make the user the owner of a file that a test has written."""
        self._place.account.own(path)

    def set_app(self, **settings: Any) -> None:
        """Switch settings in the window of Ollama.app; they count from its server's next start."""
        home = str(self.home)
        app_settings.write(home, settings)
        self._place.account.own_all(Path(app_settings.database(home)).parent)

    def vary(self, **changes: Any) -> None:
        """Change in what its macOS differs from others, see `Variant`."""
        self._macos.launchd.vary(**changes)
