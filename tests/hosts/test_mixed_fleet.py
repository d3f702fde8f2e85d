"""Two real Linux machines and two simulated Macs in one inventory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fleet_fixtures import simulated_project
from tests.hosts.project import LabProject
from tests.lab.fixture_types import Boot
from tests.lab.lab import Lab
from tests.sim.remote import until_answering

pytestmark = [pytest.mark.host, pytest.mark.ollama]


def test_one_edit_reaches_all_and_a_dead_mac_is_its_own_trouble(
    boot: Boot, lab: Lab, tmp_path: Path
) -> None:
    lab_project = LabProject(lab, tmp_path)
    for kinds in ("installer", "user"):
        lab_project.add(boot(kinds))
    with simulated_project() as project:
        app, agent = project.add_mac("studio", ollama="app"), project.add_mac("mini")
        until_answering(app)
        project.nodes |= lab_project.nodes
        known = project.fleetctl.folder / ".fleetctl" / "known_hosts"
        known.write_text(known.read_text() + lab.known_hosts.read_text())
        project.write()
        quick = ("--yes", "--settle", "1", "--serial", "100%")
        assert "4 changed" in project.fleetctl("provision", *quick).exits(0).out
        project.fleetctl("check").exits(0)

        project.write(defaults={"ollama": {"keep_alive": "3h"}})
        document = json.loads(project.fleetctl("apply", "--json", *quick).exits(0).out)
        assert {node["state"] for node in document["outcomes"].values()} == {"changed"}
        assert len(document["outcomes"]) == 4
        project.fleetctl("check").exits(0)

        agent.stop()
        project.write(defaults={"ollama": {"keep_alive": "4h"}})
        outcome = project.fleetctl("apply", *quick).exits(4)
        assert "3 changed, 1 unreachable" in outcome.out
