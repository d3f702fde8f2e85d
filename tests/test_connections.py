"""`fleetctl.connections`, as a user's own script uses it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fleetctl
from fleetctl.errors import Exit, FleetError
from tests.conftest import ROOT, clean_environment
from tests.docs_reading import fenced
from tests.fleet_fixtures import Project, simulated_project

EXAMPLE, FABFILE = fenced(ROOT / "docs" / "scripting.md", "python")


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with simulated_project() as project:
        project.add("box")
        project.add("mini")
        project.nodes["here"] = {"ssh": {"host": "localhost"}}
        project.nodes["routed"] = {"ssh": "none", "endpoint": "http://192.168.1.9:11434"}
        project.write()
        yield project


@pytest.fixture
def inventory(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return project.fleetctl.folder / "fleet.yaml"


def test_the_example_of_the_documentation_runs(project: Project) -> None:
    (project.fleetctl.folder / "space.py").write_text(EXAMPLE)
    done = subprocess.run(
        [sys.executable, "space.py"],
        cwd=project.fleetctl.folder,
        env=clean_environment(project.fleetctl.folder),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [re.sub(r"\d+", "N", line) for line in done.stdout.splitlines()] == [
        "box N MiB",
        "mini N MiB",
    ]


def test_the_fabfile_of_the_documentation_is_valid_python() -> None:
    ast.parse(FABFILE)


def test_connections_are_open_inside_and_closed_after(inventory: Path) -> None:
    with fleetctl.connections("box", inventory) as nodes:
        (box,) = nodes.values()
        assert list(nodes) == ["box"]
        assert box.is_connected
    assert not box.is_connected
    assert fleetctl.connections is fleetctl.connections


def test_this_machine_and_routed_nodes_are_left_out(inventory: Path) -> None:
    with fleetctl.connections(inventory=inventory) as nodes:
        assert sorted(nodes) == ["box", "mini"]
    with fleetctl.connections("here,routed", inventory) as nodes:
        assert nodes == {}


def test_the_inventory_is_looked_up_as_by_the_commands(
    inventory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FleetError, match="no inventory found"), fleetctl.connections():
        pass
    monkeypatch.setenv("FLEETCTL_INVENTORY", str(inventory))
    with fleetctl.connections("mini") as nodes:
        assert list(nodes) == ["mini"]
    monkeypatch.delenv("FLEETCTL_INVENTORY")
    monkeypatch.chdir(inventory.parent)
    with fleetctl.connections("mini") as nodes:
        assert list(nodes) == ["mini"]


def test_an_unknown_host_key_is_refused(project: Project, inventory: Path) -> None:
    known = inventory.parent / ".fleetctl" / "known_hosts"
    before = known.read_text()
    known.write_text(project.fleet.machines["mini"].known_hosts_line + "\n")
    try:
        with pytest.raises(FleetError) as caught, fleetctl.connections(inventory=inventory):
            pytest.fail("connected")
    finally:
        known.write_text(before)
    shown = project.fleet.machines["box"].fingerprint
    assert caught.value.message == f"box: its host key is not known: {shown}"
    assert caught.value.exit_code == Exit.REFUSED
    assert f"fleetctl trust box --fingerprint {shown}" in str(caught.value.hint)
    assert known.read_text() == before


def test_every_node_that_fails_is_named(project: Project, inventory: Path) -> None:
    project.nodes["dead-1"] = {"ssh": {"host": "127.0.0.1", "port": 1}}
    project.nodes["dead-2"] = {"ssh": {"host": "127.0.0.2", "port": 1}}
    project.write()
    with pytest.raises(FleetError) as caught, fleetctl.connections(inventory=inventory):
        pytest.fail("connected")
    del project.nodes["dead-1"], project.nodes["dead-2"]
    project.write()
    assert caught.value.message == (
        "dead-1: 127.0.0.1:1 refused the connection; dead-2: 127.0.0.2:1 refused the connection"
    )
    assert caught.value.exit_code == Exit.UNREACHABLE


def test_importing_fleetctl_loads_no_ssh() -> None:
    code = "import fleetctl, sys; print(sorted({'fabric', 'paramiko', 'httpx'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'conections'"):
        fleetctl.conections  # type: ignore[attr-defined]  # noqa: B018
