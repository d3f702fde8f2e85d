"""Steps of a user's own that are wrong, or meet what they do not expect: said, and nothing done."""

from __future__ import annotations

from typing import Any

import pytest

from fleetsim.machine import Machine
from tests.fleet_fixtures import Project
from tests.sim.remote import until_answering
from tests.test_apply import QUICK
from tests.test_ways_back import steps

FILE = {"path": "~/note", "content": "1"}
COMMAND = {"run": "touch ~/done", "unless": "true"}


@pytest.fixture
def box(project: Project) -> Machine:
    machine = project.add("box")
    until_answering(machine)
    return machine


@pytest.mark.parametrize("path", ["~/notes/", "~//z", "~/./y", "~/", "/", "//etc/x", "~/../x", "x"])
def test_a_path_that_names_no_file_is_refused(project: Project, path: str) -> None:
    project.add("box")
    steps(project, {"file": FILE | {"path": path}})
    assert "must be an absolute path of a file" in project.fleetctl("check").exits(2).err


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ([{"name": "x", "command": COMMAND}] * 2, "two steps of the playbook apply are called 'x'"),
        ([{"name": "command 8", "command": COMMAND}, {"command": COMMAND}], "are called 'command"),
        ([{"import": "provision.yaml", "when": "false"}], "`os` and `when` do not gate"),
        ([{"name": "a\nb", "command": COMMAND}], "it must be one line of text"),
        ([{"name": "a\x1b[31m", "command": COMMAND}], "it must be one line of text"),
        ([{"command": {"run": "true", "unless": ""}}], "needs `unless` or `creates`"),
    ],
)
def test_a_step_that_could_be_misread_is_refused(
    project: Project, own: list[dict[str, Any]], says: str
) -> None:
    project.add("box")
    steps(project, *own)
    assert says in project.fleetctl("check").exits(2).err


def test_commands_without_a_name_have_guards_of_their_own(project: Project, box: Machine) -> None:
    """Also in a playbook that is imported, at the same place in its file."""
    folder = project.fleetctl.folder / "playbooks"
    project.fleetctl("apply", *QUICK).exits(0)
    steps(project, {"import": "more.yaml"}, {"command": COMMAND})
    text = '{"steps": [{"file": {"path": "~/a", "content": ""}}, {"file": {"path": "~/b", '
    text += '"content": ""}}, {"command": {"run": "touch ~/two", "creates": "~/two"}}]}'
    (folder / "more.yaml").write_text(text)
    project.fleetctl("apply", *QUICK).exits(0)
    assert (box.home / "two").exists()
    assert not (box.home / "done").exists()


def test_a_guard_that_is_no_shell_is_not_known_and_names_its_step(
    project: Project, box: Machine
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    steps(project, {"name": "mine", "command": {"run": "true", "unless": "test -e 'x"}})
    out = project.fleetctl("check").exits(0).out
    assert "not known: whether to run 'mine' is not known" in out


def test_a_file_that_is_too_large_to_compare_is_an_obstacle(project: Project, box: Machine) -> None:
    (box.home / "note").write_bytes(b"x" * (2**20 + 1))
    steps(project, {"file": FILE})
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "obstacle: the content of ~/note is not known, because it is larger than 1 MiB" in out


def test_a_folder_that_may_not_be_entered_leaves_nothing_to_mend(
    project: Project, box: Machine
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    closed = box.home / "closed"
    closed.mkdir(mode=0o000)
    steps(project, {"file": FILE | {"path": "~/closed/note"}})
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "is not known, because its folder may not be searched" in outcome.out
    steps(project)
    project.fleetctl("check").exits(0)
    closed.chmod(0o700)  # so that the folder can be removed
