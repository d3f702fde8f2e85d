"""A simulated machine of any kind: a folder, a user, an SSH server, ports and processes.

Its operating system, Linux or macOS, is passed in."""

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
"""Below the kernel's ephemeral ports, which another process could be given before ours listens."""


class OperatingSystem(Protocol):
    """What distinguishes kinds of machine: sessions, jobs, boot and shutdown."""

    @property
    def session_environment(self) -> dict[str, str]: ...

    @property
    def mark(self) -> Mapping[str, str]:
        """Variables that every process of the machine has in its environment, and no other
        process."""
        ...

    @property
    def replaced_paths(self) -> Mapping[bytes, bytes]:
        """Paths of the host in scripts, and what replaces them: the kernel is shared, and a process
        of the host must not be taken for one of the machine's."""
        ...

    def boot(self) -> None: ...

    def session_opened(self) -> None: ...

    def session_closed(self) -> None: ...

    def shut_down(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a machine and the files in it, its name and its user."""

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
    def supervisor(self) -> Path:
        """Holds the pid of the process that simulates this machine; its programs exit when that
        process ends."""
        return self.folder / "supervisor.pid"

    @property
    def identity(self) -> dict[str, str]:
        """Variables about the user, for logins and jobs on any system."""
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
    """Connect with `host`, `port`, `user`, `identity_file` and `host_key`."""

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

    # --- connection data ---

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
        """The URL of its Ollama for clients on this host."""
        return f"http://{self.host}:{self.ollama_port}"

    # --- control ---

    def start(self) -> None:
        if self._place.runtime.exists():
            self._end_leftovers()  # left by a process that was killed without stopping this machine
            shutil.rmtree(self._place.runtime)
        self._place.runtime.mkdir(mode=0o700)
        self._place.account.own(self._place.runtime)
        self._place.supervisor.write_text(str(os.getpid()))
        self._system.boot()
        login = Login(
            user=self.user,
            authorized_keys=self.home / ".ssh/authorized_keys",
            passwords=self.passwords,
            account=self._place.account,
            environment=self._system.session_environment,
            home=str(self.home),
            replaced_paths=self._system.replaced_paths,
        )
        self._ssh = SshServer(login, self._key, self._events(), self.port)

    def stop(self) -> None:
        """Switch the machine off: closes all connections and ends all processes. Files stay."""
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
        """Change fields of its `Behaviour`; most take effect at the next start of Ollama."""
        behaviour = read_behaviour(str(self._place.behaviour))._replace(**changes)
        behaviour.write(str(self._place.behaviour))

    # --- observation ---

    @property
    def behaviour(self) -> Behaviour:
        return read_behaviour(str(self._place.behaviour))

    def refusals(self) -> list[str]:
        return self._place.refused.read_text(encoding="utf-8").splitlines()

    def processes(self) -> list[int]:
        """All processes of the machine, also those that detached themselves."""
        return sorted(processes_with(self._system.mark))

    # --- private ---

    def _authorize(self) -> None:
        folder = self.home / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        keys = folder / "authorized_keys"
        keys.write_text(self.identity_file.with_suffix(".pub").read_text())
        keys.chmod(0o600)
        self._place.account.own_all(folder)

    def _port(self, name: str) -> int:
        """A port on this host's loopback, chosen once, so that it stays the same after a reboot."""
        file = self.folder / f"{name}.port"
        while not file.exists():
            port = random.choice(_PORTS)
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                file.write_text(str(port))
        return int(file.read_text())

    def _tunnel_port(self, port: int) -> int | None:
        """The loopback port behind a port of the machine. Only the machine's own ports: on a
        developer's machine 11434 may be a real Ollama."""
        ports = self.behaviour.ports
        return ports.get(str(port)) or (port if port in ports.values() else None)

    def _events(self) -> Events:
        boot = self._boot = object()

        def closed() -> None:
            # a connection closed by a reboot must not count as a logout afterwards
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
