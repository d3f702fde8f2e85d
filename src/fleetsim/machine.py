"""A simulated machine of any kind: a folder, a user, an SSH server, ports, and what it started.

What makes it a Linux machine or a Mac is its operating system, which is handed in."""

import contextlib
import os
import random
import shutil
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fleetsim.keys import fingerprint, make_key, public_line
from fleetsim.ollama.behaviour import Behaviour, read_behaviour
from fleetsim.processes import Account, processes_with
from fleetsim.sshd import Events, Login, Passwords, SshServer

OLLAMA_PORT = 11434
_STOP_SECONDS = 1.0
_PORTS = range(15000, 32000)
"""Below those that the kernel gives to others while ours is not yet listened on."""


class OperatingSystem(Protocol):
    """What runs the jobs of a machine."""

    @property
    def session_environment(self) -> dict[str, str]: ...

    @property
    def mark(self) -> Mapping[str, str]:
        """What is in the environment of every process on the machine, and of no other."""
        ...

    @property
    def moved(self) -> Mapping[bytes, bytes]:
        """Where the machine has what is the host's under that path: the kernel is shared, and an
        Ollama of the host is none of the machine's."""
        ...

    def boot(self) -> None: ...

    def session_opened(self) -> None: ...

    def session_closed(self) -> None: ...

    def shut_down(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a machine keeps its things, and who it is."""

    folder: Path
    name: str
    user: str
    account: Account

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def tools(self) -> Path:
        return self.folder / "bin"

    @property
    def runtime(self) -> Path:
        return self.folder / "run"

    @property
    def refused(self) -> Path:
        return self.folder / "refused.log"

    @property
    def behaviour(self) -> Path:
        return self.folder / "ollama.json"

    @property
    def keeper(self) -> Path:
        """Holds the number of the process that runs this machine; without it, it is off."""
        return self.folder / "keeper.pid"

    @property
    def identity(self) -> dict[str, str]:
        """What a login and a job know about their user, on any system."""
        return {
            "HOME": str(self.home),
            "USER": self.user,
            "LOGNAME": self.user,
            "SHELL": "/bin/sh",
        }

    def make(self) -> None:
        if not self.account.may_reach(self.folder.parent):
            raise RuntimeError(
                f"user {self.account.uid} cannot enter {self.folder.parent}: "
                "choose a folder that others can enter"
            )
        for folder in (self.folder, self.home, self.tools):
            folder.mkdir(exist_ok=True)
        self.refused.touch()
        for path in (self.folder, self.home, self.refused):
            self.account.own(path)

    def refuse(self, what: str) -> None:
        with self.refused.open("a", encoding="utf-8") as file:
            file.write(what + "\n")


class Machine:
    """`host`, `port`, `user`, `identity_file` and `host_key` are how to reach it."""

    host = "127.0.0.1"

    def __init__(self, place: Place, system: OperatingSystem, identity_file: Path) -> None:
        self.name = place.name
        self.user = place.user
        self.home = place.home
        self.folder = place.folder
        self.identity_file = identity_file
        self.passwords = Passwords()
        self.ollama_port = self._port("ollama")
        self._place = place
        self._system = system
        self._key = make_key(place.folder / "host_key")
        self._ssh: SshServer | None = None
        self._boot: object | None = None
        self._authorize()
        self.behave(ports={str(OLLAMA_PORT): self.ollama_port})

    # --- how to reach it ---

    @property
    def port(self) -> int:
        return self._port("ssh")

    @property
    def host_key(self) -> str:
        return public_line(self._key).strip()

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._key)

    @property
    def known_hosts_line(self) -> str:
        return f"[{self.host}]:{self.port} {self.host_key}"

    @property
    def endpoint(self) -> str:
        """Where its Ollama is for anybody on this host."""
        return f"http://{self.host}:{self.ollama_port}"

    # --- what it does ---

    def start(self) -> None:
        if self._place.runtime.exists():
            self._end_leftovers()  # of a process that was killed, and with it this machine
            shutil.rmtree(self._place.runtime)
        self._place.runtime.mkdir(mode=0o700)
        self._place.account.own(self._place.runtime)
        self._place.keeper.write_text(str(os.getpid()))
        self._system.boot()
        login = Login(
            user=self.user,
            authorized_keys=self.home / ".ssh/authorized_keys",
            passwords=self.passwords,
            account=self._place.account,
            environment=self._system.session_environment,
            home=str(self.home),
            moved=self._system.moved,
        )
        self._ssh = SshServer(login, self._key, self._events(), self.port)

    def stop(self) -> None:
        """Switch it off: no connection, no process is left. What is on disk stays."""
        if self._ssh is None:
            return
        self._boot = None
        self._ssh.close()
        self._ssh = None
        self._system.shut_down(_STOP_SECONDS)
        self._end_leftovers()

    def reboot(self) -> None:
        self.stop()
        self.start()

    def behave(self, **changes: Any) -> None:
        """Change how its Ollama behaves, see `Behaviour`; most of it counts from the next start."""
        behaviour = read_behaviour(str(self._place.behaviour))._replace(**changes)
        behaviour.write(str(self._place.behaviour))

    # --- what can be seen from outside ---

    @property
    def behaviour(self) -> Behaviour:
        return read_behaviour(str(self._place.behaviour))

    def refusals(self) -> list[str]:
        return self._place.refused.read_text(encoding="utf-8").splitlines()

    def processes(self) -> list[int]:
        """Every process that runs on it, whoever started it and however it detached itself."""
        return sorted(processes_with(self._system.mark))

    # --- inside ---

    def _authorize(self) -> None:
        folder = self.home / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        keys = folder / "authorized_keys"
        keys.write_text(self.identity_file.with_suffix(".pub").read_text())
        keys.chmod(0o600)
        self._place.account.own_all(folder)

    def _port(self, name: str) -> int:
        """A port of this host's loopback, chosen once, so that it is the same after a reboot."""
        file = self.folder / f"{name}.port"
        while not file.exists():
            port = random.choice(_PORTS)
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                file.write_text(str(port))
        return int(file.read_text())

    def _tunnel_port(self, port: int) -> int | None:
        """Only its own ports: on a developer's machine the default port may be a real Ollama's."""
        ports = self.behaviour.ports
        return ports.get(str(port)) or (port if port in ports.values() else None)

    def _events(self) -> Events:
        boot = self._boot = object()

        def closed() -> None:
            # a connection that a reboot cut must not count as a logout after it
            if boot is self._boot:
                self._system.session_closed()

        opened = self._system.session_opened
        return Events(self._place.refuse, opened, closed, self._tunnel_port)

    def _end_leftovers(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        number = signal.SIGTERM
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.02)
            if time.monotonic() > deadline:
                number = signal.SIGKILL
