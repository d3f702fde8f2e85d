"""Every command in README and docs is typed on a terminal, in an order in which a user could."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT, Outcome, clean_environment
from tests.docs_reading import commands, fenced
from tests.fleet_fixtures import Project
from tests.terminal import on_terminal

PASSWORD = "correct horse"
ANSWERS = {
    "Is it right?": "yes",
    "Password for": PASSWORD,
    "Write this into": "y",
    "Apply these changes": "y",
}
ALIAS = "Host {name}.local\n  HostName {host}\n  Port {port}\n  IdentityFile {key}\n"

STORY = {
    "in an empty folder": [
        ("fleetctl docs", 0),
        ("fleetctl init", 0),
        ("fleetctl validate", 0),
        ("fleetctl inventory", 0),
        ("fleetctl inventory --ansible", 0),
        ("fleetctl docs nodes", 0),
        ("fleetctl schema", 0),
        ("fleetctl completion zsh", 0),
    ],
    "a Mac whose user has a password": [
        ("fleetctl provision --add ada@mini-64.local --ask-password", 0),
    ],
    "a second machine and a model are in the inventory": [
        ("fleetctl trust mini-1", 0),
        ("fleetctl plan", 3),
        ("fleetctl provision", 0),
        ("fleetctl apply", 0),
        ("fleetctl check", 0),
        ("fleetctl history mini-1", 0),
        ("fleetctl unlock mini-1", 0),
        ("fleetctl restore mini-1", 0),
        ("fleetctl remove mini-1", 0),
        ("fleetctl remove mini-64", 0),
    ],
}


def test_every_command_is_in_the_story_and_none_is_made_up() -> None:
    told = {command for commands in STORY.values() for command, _ in commands}
    assert {command for _, command in commands("fleetctl")} == told


@pytest.mark.slow
def test_the_story(project: Project, tmp_path: Path) -> None:
    mac, box = project.fleet.mac("mini-64", ollama="installed"), project.fleet.linux("mini-1")
    mac.passwords.accepted = PASSWORD
    (mac.home / ".ssh/authorized_keys").unlink()
    config = project.fleetctl.folder / ".ssh/config"
    config.parent.mkdir()
    key = project.fleet.identity_file
    config.write_text(
        "".join(
            ALIAS.format(name=each.name, host=each.host, port=each.port, key=key)
            for each in (mac, box)
        )
    )

    def tell(chapter: str, folder: Path) -> None:
        for command, code in STORY[chapter]:
            typed(command, folder, project.fleetctl.folder).exits(code)

    tell("in an empty folder", tmp_path)
    tell("a Mac whose user has a password", project.fleetctl.folder)
    inventory = project.fleetctl.folder / "fleet.yaml"
    (models,) = fenced(ROOT / "docs/getting-started.md", "yaml")
    second = "  mini-1: {ssh: {host: mini-1.local, user: ada}}\n"
    inventory.write_text(inventory.read_text() + second + models)
    project.fleet.library.add("qwen2.5-coder:7b")
    tell("a second machine and a model are in the inventory", project.fleetctl.folder)


def typed(command: str, folder: Path, home: Path) -> Outcome:
    environment = {**clean_environment(home), "TERM": "xterm", "PAGER": "cat"}
    return on_terminal(*shlex.split(command), folder=folder, env=environment, answers=ANSWERS)
