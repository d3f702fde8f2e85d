"""The simulated Mac at its real paths, on a node of the lab; runs there as root.

`install` runs once, before the first boot, and creates the folders. `serve` is the launchd.
Sessions and jobs run in a mount namespace in which `BASE/bin` replaces /usr/bin."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fleetsim.installed import install_ollama, program_script
from fleetsim.launchd.launchd import Launchd
from fleetsim.launchd.site import Site, User
from fleetsim.launchd.variant import RELEASES
from fleetsim.mac.app_bundle import write_app
from fleetsim.mac.brew import Brew
from fleetsim.mac.posix_tools import host_tools
from fleetsim.mac.process_table import Process, processes
from fleetsim.mac.tools import Toolbox
from fleetsim.processes import Account
from fleetsim.tools.calls import Answer, Call, Refused, ToolServer, Toolset

BASE = Path("/usr/local/libexec/mac")
HOST, BIN, SBIN, STATE = (BASE / name for name in ("host", "bin", "sbin", "state"))
PYTHON = str(BASE / "python")
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
TEMPORARY = "/private/var/folders/xy/abc/T/"
BREW = Path("/opt/homebrew")
APPLICATIONS = Path("/Applications")
_ALSO = ("id", "ip", "sudo", "mount", "sshd")
"""Tools of the host that are kept, in addition to those of every simulated Mac."""
_HIDDEN = ("systemd", "(sd-pam)", "dbus-daemon", "polkitd", "agetty", "init")
_FIREWALL = Path("/usr/libexec/ApplicationFirewall/socketfilterfw")
_AUTO_LOGIN, _RELEASE = STATE / "auto-login", STATE / "release"
"""Files that a kind of node may have."""


def main(arguments: list[str]) -> None:
    match arguments:
        case ["install", user, *extras]:
            _install(_user(user), extras)
        case ["serve", user]:
            _serve(_user(user))
        case _:
            sys.exit("install USER [app|brew]…, or serve USER")


def _user(name: str) -> User:
    entry = pwd.getpwnam(name)
    identity = {
        "HOME": entry.pw_dir,
        "USER": name,
        "LOGNAME": name,
        "SHELL": entry.pw_shell,
        "TMPDIR": TEMPORARY,
    }
    return User(name, Account(entry.pw_uid, entry.pw_gid), Path(entry.pw_dir), identity)


# --- before the first boot ---


def _install(user: User, extras: list[str]) -> None:
    for folder in (HOST, BIN, SBIN, STATE, STATE / "login-items"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (*host_tools(), *_ALSO):
        if found := shutil.which(name):
            shutil.copy2(os.path.realpath(found), HOST / name)
    (HOST / "sh").unlink()
    (HOST / "sh").symlink_to("bash")  # as on macOS
    for name in ("id", "sudo"):
        (BIN / name).symlink_to(HOST / name)
    _FIREWALL.parent.mkdir(parents=True)
    _FIREWALL.symlink_to(BIN / _FIREWALL.name)
    shared = [STATE, STATE / "login-items", Path(TEMPORARY)]
    private = [user.home / "Library", user.agents, user.home / ".ollama/logs"]
    for folder in (*shared, *private, Path("/Library/LaunchDaemons"), APPLICATIONS):
        folder.mkdir(parents=True, exist_ok=True)
    (STATE / "refused.log").touch()
    for path in (*private, private[-1].parent, Path(TEMPORARY)):
        user.account.own(path)
    for path in (STATE, STATE / "login-items", STATE / "refused.log"):
        path.chmod(0o777)  # the app and the tools write there as any user
    if "app" in extras:
        _install_app()
    if "brew" in extras:
        _install_brew(user)


def _install_app() -> None:
    programs = BASE / "programs"
    install_ollama(programs, PYTHON)
    script = program_script(programs, PYTHON, STATE, "app")
    contents = APPLICATIONS / "Ollama.app/Contents"
    write_app(contents, script, Path("/usr/local/bin/ollama"), STATE / "login-items")


def _install_brew(user: User) -> None:
    launchd = Launchd(_site(user), RELEASES["15"])
    brew = Brew(BREW, "6.0.18", launchd)
    for folder in (brew.bin, BREW / "var/log"):
        folder.mkdir(parents=True, exist_ok=True)
    (brew.bin / "ollama").symlink_to("../opt/ollama/bin/ollama")
    brew.write_plist(brew.label, user)
    user.account.own_all(BREW)


# --- from boot to shutdown ---


def _serve(user: User) -> None:
    release = _RELEASE.read_text() if _RELEASE.exists() else "15"
    launchd = Launchd(_site(user), RELEASES[release])
    boot = str(uuid.uuid4()).upper()
    tool_server = ToolServer()
    tools = Toolbox(
        name=socket.gethostname(),
        launchd=launchd,
        table=_table,
        configured=lambda _process, host, port: (host, port),
        boot=lambda: boot,
        state=STATE,
        refused=STATE / "refused.log",
        applications=(APPLICATIONS, user.home / "Applications"),
        interfaces=_interfaces(),
        temporary=TEMPORARY,
    )
    tools.install(tool_server, PYTHON, BIN, BIN)
    if BREW.exists():
        brew = Brew(BREW, "6.0.18", launchd)
        tool_server.install(Toolset({"brew": brew}, _refuse), brew.bin, PYTHON)
    control = _Control(launchd, user)
    verbs = {"log-in": control.log_in, "log-out": control.log_out, "vary": control.vary}
    verbs["session-opened"] = control.session_opened
    tool_server.install(Toolset(verbs, _refuse), BASE, PYTHON)
    launchd.boot()
    if _AUTO_LOGIN.exists():
        launchd.log_in(user)
    _tell_systemd()
    threading.Event().wait()


class _Control:
    """Programs in BASE for tests, in place of the keyboard of a real Mac."""

    def __init__(self, launchd: Launchd, user: User) -> None:
        self._launchd = launchd
        self._user = user

    def log_in(self, _call: Call) -> Answer:
        self._launchd.log_in(self._user)
        return Answer()

    def log_out(self, _call: Call) -> Answer:
        self._launchd.log_out(self._user)
        return Answer()

    def session_opened(self, call: Call) -> Answer:
        if call.uid == self._user.uid:
            self._launchd.open_background(self._user)
        return Answer()

    def vary(self, call: Call) -> Answer:
        """Arguments NAME=NUMBER change fields of the `Variant`."""
        try:
            pairs = [word.split("=") for word in call.arguments]
            self._launchd.vary(**{name: _number(value) for name, value in pairs})
        except (TypeError, ValueError) as error:
            raise Refused(str(error)) from None
        return Answer()


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)


def _site(user: User) -> Site:
    return Site(
        users=(user,),
        daemons=Path("/Library/LaunchDaemons"),
        agents=Path("/Library/LaunchAgents"),
        login_items=STATE / "login-items",
        store=Path("/var/db/com.apple.xpc.launchd"),
        path=PATH,
        program=lambda path: path,
        refuse=_refuse,
        mark={},
    )


def _table() -> Iterator[Process]:
    """The processes of the node, except those that reveal a Linux machine."""
    for process in processes({}):
        if process.pid == 1:
            yield replace(process, arguments=("/sbin/launchd",))
        elif not process.name.startswith(_HIDDEN) and process.pid != os.getpid():
            yield process


def _interfaces() -> str:
    result = subprocess.run(
        [str(HOST / "ip"), "-o", "addr"], capture_output=True, text=True, check=True
    )
    lines = []
    for line in result.stdout.splitlines():
        _, name, family, address, *_ = line.split()
        lines.append(f"{name}: flags=8863<UP,RUNNING>\n\t{family} {address.partition('/')[0]}")
    return "\n".join(lines)


def _refuse(what: str) -> None:
    with (STATE / "refused.log").open("a", encoding="utf-8") as file:
        file.write(what + "\n")


def _tell_systemd() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])


if __name__ == "__main__":
    main(sys.argv[1:])
