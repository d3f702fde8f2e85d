"""The controller as a target, steps from outside the package, and one connection an apply."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from fleetctl.inventory import parse
from fleetctl.model.facts import Answer, Answers
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Change, Finding, Level, RunCommand
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from fleetctl.shell import Question
from fleetctl.steps import Step, StepContext
from fleetsim.machine import Machine
from tests.conftest import ROOT, finished
from tests.disturbed import Disturbance
from tests.facts import facts_of, target_of
from tests.fleet_fixtures import Project
from tests.sim.remote import connect, execute, until_answering
from tests.test_apply import QUICK
from tests.test_ways_back import steps

IGNORED = ".fleetctl/.gitignore"
AGENT = """---
name: {{ node.name if node else fleet.name }}
description: {{ fleet.agents.planner.description }}
---

{{ fleet.agents.planner.prompt }}
"""
PROMPT = 'Plan first.\n\n---\n"quotes" {{ braces }} é\n'


@pytest.fixture
def box(project: Project) -> Machine:
    machine = project.add("box")
    until_answering(machine)
    return machine


def test_a_file_of_the_controller_is_planned_written_and_kept(
    project: Project, box: Machine
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    file = project.fleetctl.folder / IGNORED
    file.unlink()
    found = project.fleetctl("check").exits(3)
    assert f"controller: write {file}" in found.out
    assert "1 node and the controller: 1 ok, 1 drift" in found.out
    assert "controller" not in project.fleetctl("check", "--limit", "box").exits(0).out
    project.fleetctl("apply", "--limit", "controller", "--yes").exits(0)
    assert file.read_text() == "*\n"
    file.write_text("logs\n")
    document = project.fleetctl("check", "--json").exits(3).json
    assert document["controller"]["changes"][0]["diff"] == ["@@ -1 +1 @@", "-logs", "+*"]
    project.fleetctl("apply", "--yes").exits(0)
    project.fleetctl("check").exits(0)


def test_agent_and_dotenv_files_go_through_the_same_path(project: Project, box: Machine) -> None:
    agents = {"planner": {"model": "m", "description": 'Plans: "all"', "prompt": PROMPT}}
    models = {"m": {"node": "box", "ollama_model": "tiny"}}
    project.write(agents=agents, models=models)
    folder = project.fleetctl.folder
    (folder / "templates").mkdir()
    (folder / "templates/planner.md").write_text(AGENT)
    (folder / "templates/fleet.dotenv").write_text("FLEET={{ fleet.name }}\n")
    steps(
        project,
        {"on": "controller", "file": {"path": "agents/planner.md", "template": "planner.md"}},
        {
            "on": "controller",
            "file": {"path": ".env.fleet", "template": "fleet.dotenv", "mode": "0600"},
        },
    )
    project.fleetctl("apply", *QUICK).exits(0)
    written = (folder / "agents/planner.md").read_text()
    assert written.startswith('---\nname: "fleet"\ndescription: "Plans: \\"all\\""\n---\n')
    assert written.endswith(PROMPT + "\n")
    assert (folder / ".env.fleet").read_text() == "FLEET='fleet'\n"
    assert (folder / ".env.fleet").stat().st_mode & 0o777 == 0o600
    project.fleetctl("check").exits(0)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"file": {"path": "/etc/passwd", "content": ""}}, "must be relative to the project"),
        ({"file": {"path": "../x", "content": ""}}, "must be an absolute path of a file"),
        ({"file": {"path": "x", "content": "", "sudo": True}}, "without `sudo`"),
        ({"command": {"run": "true", "unless": "false"}}, "it must be nodes"),
    ],
)
def test_a_playbook_reaches_nothing_of_the_controller_but_the_project(
    project: Project, step: dict[str, object], says: str
) -> None:
    project.add("box")
    steps(project, {"on": "controller", **step})
    assert says in project.fleetctl("check").exits(2).err


def test_a_step_that_is_named_power_is_not_asked_for_sleep(project: Project, box: Machine) -> None:
    """A step is found by its place in the playbook, never by its name."""
    project.nodes["box"]["power"] = {"sleep": "never"}
    project.write()
    steps(project, {"name": "power", "command": {"run": "true", "unless": "false"}})
    out = project.fleetctl("check").exits(3).out
    assert "run: power" in out
    assert "never sleep" not in out
    assert "power.sleep is not managed: it is not a Mac" in out


class Weather(Step):
    """A kind of step in a module outside of fleetctl."""

    kind: ClassVar[str] = "weather"
    wanted: str

    def questions(self, target: Target) -> list[Question]:
        return [Question("sky", "cat ~/weather 2>/dev/null"), Question("wind", "echo 7")]

    def read(self, answers: Answers) -> tuple[str, int]:
        return answers["sky"].text.strip(), int(answers["wind"].text)

    def plan(self, context: StepContext, seen: tuple[str, int]) -> Iterator[Change | Finding]:
        sky, wind = seen
        if sky != self.wanted:
            yield RunCommand(context.step, f"echo {self.wanted} >~/weather", "user")
        if wind > 5:
            yield Finding("WX001", Level.WARNING, f"wind {wind} on {context.node.name}")


def test_a_step_from_outside_the_package_asks_reads_and_plans(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/own.yaml").write_text(
        "steps:\n  - weather: {wanted: sun}\n  - name: again\n    weather: {wanted: rain}\n"
    )
    fleet, _ = parse(b"nodes: {box: {}}", tmp_path / "fleet.yaml")
    target = target_of(fleet)
    entries = read_playbook("own", tmp_path)
    asked = [question for entry in entries for question in entry.questions(target)]
    assert [question.key for question in asked] == ["1 sky", "1 wind", "2 sky", "2 wind"]
    answers = _answered(asked)
    facts = facts_of({"answers": answers}, target)
    found = plan(fleet, target, facts, entries, Templates(tmp_path))
    assert [change.title for _, change in found.changes] == ["run: weather 1"]
    assert [finding.code for finding in found.findings][:1] == ["WX001"]


def _answered(asked: list[Question]) -> Answers:
    said = {"1 sky": b"rain\n", "2 sky": b"rain\n", "1 wind": b"7\n", "2 wind": b"7\n"}
    return {question.key: Answer(0, said[question.key]) for question in asked}


def test_plan_and_change_share_one_connection_and_need_two_looks(
    project: Project, box: Machine
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    log = max((project.fleetctl.folder / ".fleetctl/logs").glob("*-apply.log")).read_text()
    assert log.count("Authentication (publickey) successful") == 1
    looks = [
        line for line in log.splitlines() if " box fleetctl.links" in line and "> host" in line
    ]
    assert len(looks) == 2


def test_a_run_that_loses_its_lock_does_not_report_a_lost_connection(
    project: Project, box: Machine
) -> None:
    """`unlock` while a run is at work: the run stops, and says why."""
    held = Disturbance(step=3, does="rm -f $state/lock")
    start = project.fleetctl.start(*held.arguments, "apply", *QUICK, env={"PYTHONPATH": str(ROOT)})
    outcome = finished(start).exits(5)
    assert "its lock was removed by `fleetctl unlock`, so nothing more was done" in outcome.out
    assert "connection" not in outcome.out
    again = project.fleetctl("apply", *QUICK).exits(0)
    assert "1 node: 1 changed" in again.out


def test_a_fifo_in_place_of_a_file_is_refused_and_does_not_hang(
    project: Project, box: Machine
) -> None:
    folder = box.home / ".config/fleetctl"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "ollama.env")
    project.own(folder)
    out = project.fleetctl("check", "--timeout", "20").exits(3).out
    assert "ollama.env is not a regular file" in out


def test_a_unit_file_that_is_too_long_to_read_is_not_cut(project: Project, box: Machine) -> None:
    folder = box.home / ".config/systemd/user/ollama.service.d"
    folder.mkdir(parents=True)
    comment = "# " + "x" * 70 + "\n"
    text = "[Service]\n" + comment * 20_000 + "UnsetEnvironment=OLLAMA_KEEP_ALIVE\n"
    (folder / "zzz.conf").write_text(text)
    project.own(folder)
    with connect(box) as client:
        execute(client, "systemctl --user daemon-reload")
    out = project.fleetctl("check").exits(3).out
    assert "zzz.conf sets is not known, because it is larger than 1 MiB" in out


@pytest.mark.parametrize(
    "when",
    [
        "fleet.root.joinpath('x').write_text('x')",
        "node.environment.update({'LD_PRELOAD': 'x'})",
        "fleet.__class__.__mro__",
        "facts.host._get('home')",
    ],
)
def test_an_expression_gets_plain_values_only(project: Project, box: Machine, when: str) -> None:
    steps(project, {"when": when, "file": {"path": "~/x", "content": ""}})
    outcome = project.fleetctl("check").exits(2)
    assert "steps.1.when: cannot be evaluated" in outcome.out
    assert not (project.fleetctl.folder / "x").exists()
