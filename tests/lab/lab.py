"""A lab: one network, its registry and its nodes, under one slot number.

Slot 0 is the lab of `make lab`, which outlives its command. Each test session takes a free slot
above and holds its lock; a slot with files and no lock holder was left by a crash."""

import fcntl
import socket
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from tests.lab.base import USER, base_image, python_layer
from tests.lab.cache import remove_tree
from tests.lab.cgroup import Cgroup
from tests.lab.command import LabError, run, wait_until
from tests.lab.credentials import credentials
from tests.lab.kinds import kind_named
from tests.lab.models import model_store
from tests.lab.network import FIRST_NODE, LAST_NODE, REGISTRY, Network
from tests.lab.node import Node
from tests.lab.ollama_build import ollama_binary, ollama_layer
from tests.lab.packages import install_packages, require_root
from tests.lab.registry import PORT

RUN = Path("/run/fleetctl-lab")
MANUAL_SLOT, LAST_SLOT = 0, 99


def prepare() -> None:
    """Build what all labs share; immediate with warm caches."""
    require_root()
    install_packages()
    makers = (base_image, python_layer, ollama_binary, model_store, credentials)
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(make) for make in makers]:
            done.result()


@dataclass(slots=True)
class Lab:
    slot: int
    mounts: Mapping[Path, str] = field(default_factory=dict)  # mounted in nodes of kind controller
    nodes: list[Node] = field(default_factory=list)  # all nodes, also removed ones

    @property
    def state(self) -> Path:
        return RUN / str(self.slot)

    @property
    def network(self) -> Network:
        return Network(self.slot)

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        return self.state / "ssh_config"

    @property
    def identity_file(self) -> Path:
        return credentials() / "user"

    def open(self) -> None:
        self.clean()
        self.state.mkdir(parents=True, mode=0o700)
        self.network.up()
        addresses = (self.network.ipv4(REGISTRY), self.network.ipv6(REGISTRY))
        Cgroup(f"{self.network.bridge}/registry").start(
            sys.executable,
            "-m",
            "tests.lab.registry",
            self.state,
            *addresses,
            log=self.state / "registry.out",
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        answers = partial(is_listening, addresses[-1])
        wait_until(answers, "the registry does not start", self.state / "registry.out")

    def clean(self) -> None:
        """Remove everything of this slot, also what another process has made."""
        Cgroup(self.network.bridge).remove()
        self.network.down()
        remove_tree(self.state)

    def start(self, kinds: str, name: str = "", jump: Node | None = None) -> Node:
        """Make a node and start its boot; `Node.wait` returns when it is up.

        `jump` is the node that our own connections to it pass through."""
        kind = kind_named(kinds)
        name = name or f"node-{len(self.nodes) + 1}"
        mounts = self.mounts if kind.controller else {}
        node = Node(name, kind, self.free_host(), self.network, self.state / name, mounts)
        self.nodes.append(node)
        ollama = [ollama_layer(kind.ollama)] if kind.ollama else []
        python = [python_layer()] if kind.controller or kind.mac else []
        node.make([*ollama, *python, base_image()])
        (node.folder / "known_hosts").write_text(f"{node.address} {node.host_key}\n")
        (node.folder / "ssh_config").write_text(self.ssh_block(node, jump))
        for joined in (self.known_hosts, self.ssh_config):
            parts = self.state.glob(f"*/{joined.name}")
            joined.write_text("".join(part.read_text() for part in parts))
        node.start()
        return node

    def free_host(self) -> int:
        taken = {node.host for node in self.nodes if node.folder.exists()}
        return next(host for host in range(FIRST_NODE, LAST_NODE + 1) if host not in taken)

    def boot(self, kinds: str, name: str = "", jump: Node | None = None) -> Node:
        node = self.start(kinds, name, jump)
        node.wait()
        return node

    def ssh_block(self, node: Node, jump: Node | None) -> str:
        """The OpenSSH configuration to reach the node by name, with weak algorithms enabled."""
        return f"""
Host {node.name}
  HostName {node.address}
  User {USER}
  IdentityFile {self.identity_file}
  IdentitiesOnly yes
  UserKnownHostsFile {self.known_hosts}
  StrictHostKeyChecking yes
  ProxyJump {jump.name if jump else "none"}
  KexAlgorithms +diffie-hellman-group14-sha1
  HostKeyAlgorithms +ssh-rsa
  Ciphers +aes128-cbc
"""

    def ssh(self, node: Node, command: str, *, root: bool = False, stdin: str = "") -> str:
        """Run a command on the node over OpenSSH, as the user or as the observer (root)."""
        return run(*self.ssh_argv(node.name, root=root), command, stdin=stdin)

    def ssh_directly(self, node: Node) -> str:
        """Try to log in with the defaults of current OpenSSH, without a jump host."""
        options = ("-F/dev/null", "-oBatchMode=yes", "-oConnectTimeout=2", "-i", self.identity_file)
        known = f"-oUserKnownHostsFile={self.known_hosts}"
        return run("ssh", *options, known, f"{USER}@{node.address}", "hostname")

    def ssh_argv(self, name: str, *, root: bool) -> list[str]:
        user = ["-l", "root", "-i", str(credentials() / "observer")] if root else []
        return ["ssh", "-F", str(self.ssh_config), *user, name]

    def observer(self, node: Node) -> Path:
        """The control socket of a connection as root, which is closed with the node."""
        control, log = node.folder / "observer", node.folder / "observer.log"
        if not control.exists():
            Cgroup(f"{node.cgroup.name}/observer").start(
                *self.ssh_argv(node.name, root=True), "-MN", "-S", control, log=log
            )
            wait_until(control.exists, f"no way to observe {node.name}", log)
        return control


def is_listening(address: str) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection((address, PORT)):
        return True
    return False


@contextmanager
def session(mounts: Mapping[Path, str] | None = None) -> Iterator[Lab]:
    """A lab for the lifetime of this process, in a slot that no other process holds."""
    sweep()
    with free_slot() as slot:
        lab = Lab(slot, mounts or {})
        try:
            lab.open()
            yield lab
        finally:
            lab.clean()


def sweep() -> None:
    """Remove what crashed sessions have left; slots that are held are not touched."""
    for slot in range(MANUAL_SLOT + 1, LAST_SLOT + 1):
        if (RUN / str(slot)).exists():
            with try_lock(slot) as lock:
                if lock:
                    Lab(slot).clean()


@contextmanager
def free_slot() -> Iterator[int]:
    for slot in range(MANUAL_SLOT + 1, LAST_SLOT + 1):
        with try_lock(slot) as lock:
            if lock:
                yield slot
                return
    raise LabError(f"all {LAST_SLOT} slots are in use")


@contextmanager
def try_lock(slot: int) -> Iterator[IO[str] | None]:
    """The lock of a slot, or None if another process holds it."""
    RUN.mkdir(exist_ok=True, mode=0o700)
    with (RUN / f"{slot}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lock
