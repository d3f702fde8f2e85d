"""The demo, from its first command to its last; each exit code is checked by the demo itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from fleetctl.sim.demo import STEPS
from tests.conftest import FleetctlIn


@pytest.fixture
def folder() -> Iterator[Path]:
    # not tmp_path: as root the machines run as nobody, who may not enter pytest's folders
    folder = Path(mkdtemp(prefix="fleetctl-demo-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
def test_the_demo_runs_to_its_end_and_cleans_up(folder: Path) -> None:
    fleetctl = FleetctlIn(folder)
    outcome = fleetctl("demo").exits(0)
    for step in STEPS:
        assert f"$ fleetctl {step.command}" in outcome.err
    assert "workstation: rolled back: Ollama" in outcome.out
    assert "rolled back" in outcome.out.splitlines()[-3]
    inventory = (folder / "fleetctl-demo" / "fleet.yaml").read_text()
    assert "models_dir" not in inventory
    fleetctl("demo", "--clean").exits(0)
    assert not (folder / "fleetctl-demo").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(fleetctl: FleetctlIn) -> None:
    (fleetctl.folder / "fleetctl-demo").mkdir()
    precious = fleetctl.write("mine", "fleetctl-demo/precious")
    assert "holds something else" in fleetctl("demo").exits(2).err
    assert precious.exists()
