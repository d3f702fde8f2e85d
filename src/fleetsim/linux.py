"""A simulated Linux machine: a systemd for its user, and the tools to query it."""

import os
import threading
import uuid
from pathlib import Path

from fleetsim import ADDRESS
from fleetsim.machine import Place
from fleetsim.processes import processes_with
from fleetsim.systemd.journal import Journal
from fleetsim.systemd.manager import Manager
from fleetsim.systemd.service import ServiceContext
from fleetsim.systemd.unit import SearchPath
from fleetsim.tools.calls import ToolServer, Toolset, write_absent, write_constant
from fleetsim.tools.journalctl import Journalctl
from fleetsim.tools.loginctl import Loginctl
from fleetsim.tools.systemctl import Systemctl
from fleetsim.tools.systemd_analyze import SystemdAnalyze

# real machines wait ten seconds
_LOGOUT_SECONDS = 0.3
_KERNEL = "6.1.0-28-amd64"


class Linux:
    """An `OperatingSystem`. The user's manager runs while the user is logged in or lingers."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._journal = Journal(place.folder / "journal.jsonl")
        self._linger = place.folder / "linger"
        self._boot = ""
        self._lock = threading.Lock()
        self._sessions = 0
        self._user: Manager | None = None
        config = place.home / ".config/systemd/user"
        self._search = SearchPath(
            folders=(
                config,
                place.runtime / "systemd/user",
                place.home / ".local/share/systemd/user",
            ),
            specifiers={
                "h": str(place.home),
                "u": place.user,
                "U": str(place.account.uid),
                "t": str(place.runtime),
                "E": str(place.home / ".config"),
                "S": str(place.home / ".config"),
                "C": str(place.home / ".cache"),
                "H": place.name,
            },
            refuse=place.refuse,
        )
        nowhere = (Path("/nonexistent/system"), Path("/nonexistent/run"))
        self._nothing = SearchPath(folders=nowhere, specifiers={}, refuse=place.refuse)

    # --- OperatingSystem ---

    @property
    def _environment(self) -> dict[str, str]:
        """The variables that logins and jobs of this user have in common."""
        place = self._place
        return {
            **place.identity,
            **self.mark,
            "PATH": f"{place.tools}:{place.home}/.local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={place.runtime}/bus",
        }

    @property
    def session_environment(self) -> dict[str, str]:
        return {**self._environment, "SSH_CONNECTION": "127.0.0.1 0 127.0.0.1 22"}

    @property
    def mark(self) -> dict[str, str]:
        return {"XDG_RUNTIME_DIR": str(self._place.runtime)}

    @property
    def replaced_paths(self) -> dict[bytes, bytes]:
        """A script finds only the processes it names, and none of the host's listening ports."""
        own = os.fsencode(self._place.folder)
        return {path: own + path for path in (b"/proc/[0-9]", b"/proc/net/")}

    def boot(self) -> None:
        network = self._place.folder / "proc/net"
        network.mkdir(parents=True, exist_ok=True)
        for table in ("tcp", "tcp6"):
            (network / table).touch()
        self._boot = uuid.uuid4().hex
        self._sessions = 0
        if self._linger.exists():
            self._start_user_manager()

    def session_opened(self) -> None:
        with self._lock:
            self._sessions += 1
        self._start_user_manager()

    def session_closed(self) -> None:
        with self._lock:
            self._sessions -= 1
        self._schedule_logout_check()

    def shut_down(self, seconds: float) -> None:
        with self._lock:
            manager, self._user = self._user, None
        if manager:
            manager.stop_all(seconds)

    def _start_user_manager(self) -> None:
        with self._lock:
            if self._user is not None:
                return
            self._user = Manager(self._search, self._context())
        self._user.start_wanted()

    def _schedule_logout_check(self) -> None:
        timer = threading.Timer(_LOGOUT_SECONDS, self._stop_user_manager_if_unused)
        timer.daemon = True
        timer.start()

    def _stop_user_manager_if_unused(self) -> None:
        with self._lock:
            if self._sessions > 0 or self._linger.exists() or self._user is None:
                return
        # a session lasts as long as any of its processes, connected or not
        if any(processes_with(self.session_environment)):
            self._schedule_logout_check()
        else:
            self.shut_down(seconds=5)

    def _context(self) -> ServiceContext:
        place = self._place
        return ServiceContext(place.account, self._environment, self._journal, self._boot)

    # --- tools ---

    def install_tools(self, tool_server: ToolServer, python: str) -> None:
        place = self._place
        system = Manager(self._nothing, self._context())
        toolset = Toolset(
            {
                "systemctl": Systemctl(self._user_manager, lambda: system, str(place.runtime)),
                "journalctl": Journalctl(self._journal, lambda: self._boot, place.name),
                "loginctl": Loginctl(place.user, place.account.uid, self._linger),
                "systemd-analyze": SystemdAnalyze(self._search),
            },
            place.refuse,
        )
        tool_server.install(toolset, place.tools, python)
        for name, answers in self._facts().items():
            write_constant(place.tools, name, answers, place.refused)
        write_absent(place.tools, "sudo")

    def _user_manager(self) -> Manager | None:
        return self._user

    def _facts(self) -> dict[str, dict[str, str]]:
        name, user, account = self._place.name, self._place.user, self._place.account
        uid, gid = str(account.uid), str(account.gid)
        version = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1"
        lo = "1: lo    inet 127.0.0.1/8 scope host lo"
        eth = f"2: eth0    inet {ADDRESS}/24 scope global eth0"
        return {
            "uname": {
                "": "Linux",
                "-s": "Linux",
                "-m": "x86_64",
                "-r": _KERNEL,
                "-n": name,
                "-sm": "Linux x86_64",
                "-s -m": "Linux x86_64",
                "-sr": f"Linux {_KERNEL}",
                "-srm": f"Linux {_KERNEL} x86_64",
                "-snrm": f"Linux {name} {_KERNEL} x86_64",
                "-a": f"Linux {name} {_KERNEL} {version} x86_64 GNU/Linux",
            },
            "hostname": {"": name, "-s": name},
            "id": {
                "": f"uid={uid}({user}) gid={gid}({user}) groups={gid}({user})",
                "-u": uid,
                "-g": gid,
                "-un": user,
                "-u -n": user,
                "-gn": user,
                "-G": gid,
                "-Gn": user,
            },
            "ip": {
                "-o addr": f"{lo}\n{eth}",
                "-o addr show": f"{lo}\n{eth}",
                "-o -4 addr show": f"{lo}\n{eth}",
                "-o -6 addr show": "",
            },
        }
