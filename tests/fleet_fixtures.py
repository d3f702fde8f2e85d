"""A project on simulated machines: an inventory that names them, and their keys trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from fleetctl.project import make_state
from fleetsim.fleet import Fleet
from fleetsim.mac.mac import Mac
from fleetsim.machine import Machine
from tests.conftest import FleetctlIn


@dataclass
class Project:
    """Inventory values by node, written anew on each `write`."""

    fleet: Fleet
    fleetctl: FleetctlIn
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, *, trusted: bool = True, **options: Any) -> Machine:
        return self._listed(self.fleet.linux(name, **options), trusted)

    def add_mac(self, name: str, **options: Any) -> Mac:
        machine = self.fleet.mac(name, **options)
        self._listed(machine, trusted=True)
        return machine

    def _listed(self, machine: Machine, trusted: bool) -> Machine:
        name = machine.name
        self.nodes[name] = {
            "ssh": {
                "host": machine.host,
                "port": machine.port,
                "user": machine.user,
                "identity_file": str(machine.identity_file),
            },
            "endpoint": machine.endpoint,
            "ollama": {"host": "127.0.0.1:11434"},
        }
        if trusted:
            self.trust(machine)
        self.write()
        return machine

    def trust(self, machine: Machine) -> None:
        known = self.fleetctl.folder / ".fleetctl" / "known_hosts"
        make_state(known.parent)
        with known.open("a") as stream:
            stream.write(machine.known_hosts_line + "\n")

    def own(self, path: Path) -> None:
        """What a test puts on a machine belongs to the machine's user."""
        self.fleet.account.own_all(path)

    def set(self, node: str, **ollama: Any) -> None:
        self.nodes[node]["ollama"] |= ollama
        self.write()

    def write(self, **rest: Any) -> None:
        self.rest |= rest
        self.fleetctl.write(json.dumps({"nodes": self.nodes, **self.rest}))


@contextmanager
def simulated_project(library: tuple[str, ...] = ("qwen3", "tiny")) -> Iterator[Project]:
    # not tmp_path: as root the machines run as nobody, who may not enter pytest's folders
    folder = Path(mkdtemp(prefix="fleetctl-"))
    folder.chmod(0o755)
    (folder / "project").mkdir()
    with Fleet(folder / "machines", library=library) as fleet:
        yield Project(fleet, FleetctlIn(folder / "project"))
        refused = {name: machine.refusals() for name, machine in fleet.machines.items()}
    rmtree(folder)
    assert not any(refused.values()), f"asked for what is not simulated: {refused}"


def snapshot(folder: Path) -> Mapping[str, tuple[int, float, int]]:
    """Inode, time of change and size of every file below a folder."""
    return {
        str(path.relative_to(folder)): (seen.st_ino, seen.st_mtime, seen.st_size)
        for path in folder.rglob("*")
        for seen in [path.lstat()]
    }
