"""Macs at their real paths: root's launchd, sudo, zsh, and the real Ollama in every mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.project import LabProject
from tests.lab.command import wait_until
from tests.lab.fixture_types import Boot
from tests.lab.lab import Lab
from tests.lab.node import Node

pytestmark = [pytest.mark.host, pytest.mark.ollama]

QUICK = ("--yes", "--settle", "1", "--health-timeout", "20")
FILES = {
    "mac-installed": "/Library/LaunchDaemons/dev.fleetctl.ollama.plist",
    "mac-app": "/home/ada/.config/fleetctl/ollama-app.sh",
    "mac-brew": "/home/ada/.homebrew/services/ollama.env",
}


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> LabProject:
    return LabProject(lab, tmp_path)


def serving(node: Node) -> bool:
    return node.ollama_listens()


def restarted(node: Node) -> None:
    node.power_off()
    node.start()
    node.wait()
    wait_until(lambda: serving(node), f"no Ollama on {node.name}", node.folder / "console.log")


@pytest.mark.parametrize("kinds", FILES)
def test_every_mode_with_the_real_ollama(kinds: str, boot: Boot, project: LabProject) -> None:
    node = boot(kinds)
    file = node.root / FILES[kinds].lstrip("/")
    project.add(node)
    assert project("provision", *QUICK).exits(0)
    before = file.read_bytes()
    project("check").exits(0)
    assert "1 ok" in project("apply", *QUICK).exits(0).out

    project.nodes[node.name]["ollama"] = {"keep_alive": "2h"}
    assert "OLLAMA_KEEP_ALIVE -1 (forever) → 2h" in project("apply", *QUICK).exits(0).out
    project("check").exits(0)

    project.nodes[node.name]["ollama"] = {"keep_alive": "2h", "models_dir": "/Volumes/Models"}
    changed = file.read_bytes()
    assert changed != before
    outcome = project("apply", *QUICK).exits(5)
    assert f"{node.name}: rolled back: Ollama" in outcome.out
    assert file.read_bytes() == changed
    project.nodes[node.name]["ollama"] = {"keep_alive": "2h"}
    project("check").exits(0)

    restarted(node)
    project("check").exits(0)
    project("remove", node.name, *QUICK).exits(0)
    assert not file.exists()
