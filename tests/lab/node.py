"""One node: its files as an overlay over the base, and the container that boots them."""

import os
import signal
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.base import USER, USER_ID
from tests.lab.cache import remove_tree
from tests.lab.cgroup import NO_SIGNAL, Cgroup
from tests.lab.command import LabError, run, wait_until
from tests.lab.credentials import REGISTRY_NAME, credentials, make_ssh_key
from tests.lab.kinds import Kind
from tests.lab.mac import copy_simulation
from tests.lab.network import REGISTRY, Network

BOOT_SECONDS = 30
OLLAMA_PORT = 11434


@dataclass(slots=True)
class Node:
    """A machine of the lab. `folder` holds its files and its console log."""

    name: str
    kind: Kind
    host: int  # host number in the network
    network: Network
    folder: Path
    mounts: Mapping[Path, str] = field(default_factory=dict)  # host path to node path, read-only
    ready: socket.socket | None = field(default=None, repr=False)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def address(self) -> str:
        return self.network.ipv4(self.host) if self.kind.ipv4 else self.network.ipv6(self.host)

    @property
    def endpoint(self) -> str:
        host = self.address if self.kind.ipv4 else f"[{self.address}]"
        return f"http://{host}:{OLLAMA_PORT}"

    @property
    def cgroup(self) -> Cgroup:
        return Cgroup(f"{self.network.bridge}/{self.name}")

    @property
    def supervisor(self) -> Cgroup:
        """The group of systemd-nspawn itself; the machine's processes are in `payload`."""
        return Cgroup(f"{self.cgroup.name}/supervisor")

    @property
    def host_key(self) -> str:
        """The public key in the format of known_hosts: type and key."""
        (path,) = self.root.glob("etc/ssh/ssh_host_*_key.pub")
        return " ".join(path.read_text().split()[:2])

    def make(self, layers: Sequence[Path]) -> None:
        """Mount an overlay over `layers` (uppermost first) and apply the kind."""
        for name in ("root", "upper", "work"):
            (self.folder / name).mkdir(parents=True)
        upper, work = self.folder / "upper", self.folder / "work"
        options = f"lowerdir={':'.join(map(str, layers))},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "overlay", "-o", options, self.root)
        for path, text in {**self.identity(), **self.kind.files}.items():
            self.write(path, text)
        key_type = self.kind.host_key or "ed25519"
        make_ssh_key(self.root / f"etc/ssh/ssh_host_{key_type}_key", key_type)
        with (self.root / "etc/ssl/certs/ca-certificates.crt").open("a") as trusted:
            trusted.write((credentials() / "ca.pem").read_text())
        if self.kind.mac:
            copy_simulation(self.root)
        if self.kind.setup:
            run("chroot", self.root, "/bin/sh", "-e", stdin=self.kind.setup)

    def identity(self) -> Mapping[str, str]:
        keys = credentials()
        registry = self.network.ipv4 if self.kind.ipv4 else self.network.ipv6
        return {
            "/etc/hostname": f"{self.name}\n",
            "/etc/machine-id": f"{uuid.uuid4().hex}\n",
            "/etc/hosts": (
                f"127.0.0.1 localhost {self.name}\n::1 localhost\n"
                f"{registry(REGISTRY)} {REGISTRY_NAME}\n"
            ),
            "/etc/resolv.conf": "# no name server: the lab has no route to the outside\n",
            "/usr/local/share/ca-certificates/lab.crt": (keys / "ca.pem").read_text(),
            f"/home/{USER}/.ssh/authorized_keys": (keys / "user.pub").read_text(),
            "/root/.ssh/authorized_keys": (keys / "observer.pub").read_text(),
        }

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.fsencode(text))
        home = self.root / "home" / USER
        if file.is_relative_to(home):
            for owned in (file, *file.parents):
                if owned.is_relative_to(home):
                    os.chown(owned, USER_ID, USER_ID)

    def start(self) -> None:
        """Start the boot; `wait` returns when it is done."""
        self.network.attach(
            self.host, ipv4=self.kind.ipv4, sees_controller=self.kind.sees_controller
        )
        notify = self.folder / "notify"
        self.ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ready.bind(str(notify))
        self.cgroup.start(
            "systemd-nspawn",
            "--quiet",
            "--boot",
            "--register=no",
            "--keep-unit",
            "--notify-ready=yes",
            "--suppress-sync=yes",
            "--link-journal=no",
            "--resolv-conf=off",
            "--timezone=off",
            f"--machine={self.network.bridge}-{self.name}",
            f"--directory={self.root}",
            f"--network-namespace-path=/run/netns/{self.network.namespace(self.host)}",
            *(f"--bind-ro={source}:{target}" for source, target in self.mounts.items()),
            log=self.folder / "console.log",
            env={"NOTIFY_SOCKET": str(notify), "SYSTEMD_NSPAWN_LOCK": "0"},
        )

    def wait(self) -> None:
        """Return when the machine has booted and its Ollama, if it has one, listens."""
        assert self.ready, "start comes before wait"
        log = self.folder / "console.log"
        self.ready.settimeout(BOOT_SECONDS)
        try:
            while b"READY=1" not in self.ready.recv(4096):
                pass
        except TimeoutError as late:
            raise LabError(f"{self.name} does not boot:\n{log.read_text()[-2000:]}") from late
        self.ready.close()
        if self.kind.ollama and self.kind.serves:
            self.wait_for_ollama()

    def wait_for_ollama(self) -> None:
        log = self.folder / "console.log"
        wait_until(self.ollama_listens, f"no Ollama on {self.name}", log)

    def ollama_listens(self) -> bool:
        within = ("ip", "netns", "exec", self.network.namespace(self.host))
        return run(*within, "ss", "-Hltn", f"sport = :{OLLAMA_PORT}") != ""

    def power_off(self) -> None:
        """Shut down in order; the files stay, and `start` boots them again."""
        self.supervisor.end(signal.SIGTERM)
        self.cut_power()

    def cut_power(self) -> None:
        """Stop the machine immediately, as a power cut does; the files stay."""
        payload = Cgroup(f"{self.cgroup.name}/payload")
        payload.freeze()
        payload.end()
        self.supervisor.end(NO_SIGNAL)  # systemd-nspawn cleans up and exits by itself
        self.cgroup.remove()
        self.network.detach(self.host)
        for leftover in ("notify", "observer"):
            (self.folder / leftover).unlink(missing_ok=True)

    def remove(self) -> None:
        if self.cgroup.exists():
            self.cut_power()
        remove_tree(self.folder)
