"""A simulated fleet for a test. Using anything that is not simulated fails the test."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetsim.fleet import Fleet
from fleetsim.machine import Machine
from tests.sim.remote import Run, connect, execute


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    # not tmp_path: under root the machines run as user `nobody`, who cannot enter pytest's folders
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    folder.chmod(0o755)
    with Fleet(folder, library=["tiny", "other:8b"]) as fleet:
        yield fleet
        left = {name: machine.refusals() for name, machine in fleet.machines.items()}
    pids = [pid for machine in fleet.machines.values() for pid in machine.processes()]
    shutil.rmtree(folder)
    assert not any(left.values()), f"not simulated: {left}"
    assert not pids, "processes were left behind"


@pytest.fixture
def machine(fleet: Fleet) -> Machine:
    return fleet.linux("workstation", models=["tiny"])


@pytest.fixture
def run(machine: Machine) -> Iterator[Run]:
    """Runs scripts on `machine`, over one connection."""
    with connect(machine) as client:
        yield lambda script: execute(client, script)
