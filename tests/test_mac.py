"""Simulated Macs: every way in which Ollama runs there, and what becomes of it."""

from __future__ import annotations

import plistlib
from collections.abc import Iterator
from typing import Any

import pytest

from fleetctl.sim.mac.mac import Mac
from tests.fleet_fixtures import Project, simulated_project, snapshot
from tests.sim.remote import answering, eventually

QUICK = ("--yes", "--health-timeout", "8", "--settle", "0.5")
AGENT = "Library/LaunchAgents/dev.fleetctl.ollama.plist"


@pytest.fixture
def project() -> Iterator[Project]:
    with simulated_project() as project:
        yield project


def environment(mac: Mac) -> dict[str, str]:
    found: dict[str, Any] = plistlib.loads((mac.home / AGENT).read_bytes())
    return dict(found["EnvironmentVariables"])


@pytest.mark.parametrize("macos", ["14", "15", "26"])
def test_an_agent_is_made_changed_and_taken_away(project: Project, macos: str) -> None:
    mac = project.add_mac("mini", ollama="installed", macos=macos)
    before = snapshot(mac.home).keys()
    project.fleetctl("provision", "mini", *QUICK).exits(0)
    assert environment(mac)["OLLAMA_KEEP_ALIVE"] == "-1"
    project.fleetctl("check").exits(0)
    project.set("mini", keep_alive="2h")
    assert "OLLAMA_KEEP_ALIVE for ever → 2h0m0s" in project.fleetctl("apply", *QUICK).exits(0).out
    project.fleetctl("check").exits(0)
    project.fleetctl("remove", "mini", *QUICK).exits(0)
    assert not (mac.home / AGENT).exists()
    made_by_ollama = {path for path in snapshot(mac.home) if path.startswith(".ollama")}
    assert snapshot(mac.home).keys() - made_by_ollama == before - made_by_ollama


def test_an_agent_without_anybody_at_the_screen_runs_in_the_background(project: Project) -> None:
    mac = project.add_mac("mini", ollama="installed", logged_in=False)
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleetctl("check").exits(0)
    assert answering(mac)


def test_an_agent_is_back_after_reboot_and_login(project: Project) -> None:
    mac = project.add_mac("mini", ollama="agent")
    project.fleetctl("apply", *QUICK).exits(0)
    mac.reboot()
    mac.log_in()
    eventually(lambda: answering(mac))
    project.fleetctl("check").exits(0)


def test_settings_that_kill_ollama_are_taken_back_on_a_mac_too(project: Project) -> None:
    mac = project.add_mac("mini", ollama="agent")
    project.fleetctl("apply", *QUICK).exits(0)
    before = (mac.home / AGENT).read_bytes()
    project.set("mini", models_dir="/Volumes/Models")
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "mini: rolled back: Ollama" in outcome.out
    assert "permission denied" in outcome.out
    assert (mac.home / AGENT).read_bytes() == before
    eventually(lambda: answering(mac))
    project.set("mini", models_dir=None)
    project.fleetctl("check").exits(0)


def test_an_agent_that_never_was_is_not_left_behind(project: Project) -> None:
    mac = project.add_mac("mini", ollama="installed")
    project.set("mini", models_dir="/Volumes/Models")
    project.fleetctl("apply", *QUICK).exits(5)
    assert not (mac.home / AGENT).exists()
    assert not answering(mac)


def test_a_server_started_by_hand_is_explained_and_left_alone(project: Project) -> None:
    mac = project.add_mac("mini", ollama="manual")
    eventually(lambda: answering(mac))
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "Ollama was started by hand" in out
    assert answering(mac)


def test_macs_and_linux_machines_share_one_inventory(project: Project) -> None:
    project.add_mac("mini", ollama="agent")
    project.add("box")
    gone = project.add_mac("gone", ollama="agent")
    project.fleetctl("apply", *QUICK).exits(0)
    gone.stop()
    for node in ("mini", "box", "gone"):
        project.set(node, keep_alive="4h")
    outcome = project.fleetctl("apply", *QUICK).exits(4)
    assert "1 unreachable" in outcome.out
    assert "2 changed" in outcome.out
    project.fleetctl("check", "--limit", "!gone").exits(0)
