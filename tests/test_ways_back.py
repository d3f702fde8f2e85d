"""`restore`, `remove` and what a run that was cut off has left: nodes are as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from fleetsim.machine import Machine
from tests.fleet_fixtures import Project
from tests.sim.remote import Run, connect, execute, show, until_answering
from tests.test_apply import ENV_FILE, QUICK, STATE, settings

pytestmark = pytest.mark.slow


@pytest.fixture
def box(project: Project) -> Machine:
    machine = project.add("box")
    until_answering(machine)
    return machine


@pytest.fixture
def run(box: Machine) -> Iterator[Run]:
    with connect(box) as client:
        yield lambda script: execute(client, script)


def steps(project: Project, *own: dict[str, Any]) -> None:
    file = project.fleetctl.folder / "playbooks/apply.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"steps": [{"import": "apply.yaml"}, *own]}))


def environment(run: Run) -> str:
    return Path(f"/proc/{show(run, 'MainPID')}/environ").read_text()


def test_what_did_not_run_before_is_stopped_again_by_remove(project: Project, run: Run) -> None:
    run("systemctl --user disable --now ollama")
    project.fleetctl("apply", *QUICK).exits(0)
    assert (show(run, "ActiveState"), show(run, "UnitFileState")) == ("active", "enabled")
    out = project.fleetctl("remove", "box", *QUICK).exits(0).out
    assert "box: stop Ollama, which this service did not run before" in out
    assert (show(run, "ActiveState"), show(run, "UnitFileState")) == ("inactive", "disabled")


def test_what_somebody_disables_later_was_enabled_before(project: Project, run: Run) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    run("systemctl --user disable ollama")
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleetctl("remove", "box", *QUICK).exits(0)
    assert (show(run, "ActiveState"), show(run, "UnitFileState")) == ("active", "enabled")


def test_remove_finds_our_files_also_where_what_the_node_keeps_is_lost(
    project: Project, box: Machine
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    rmtree(box.home / STATE)
    out = project.fleetctl("remove", "box", *QUICK).exits(0).out
    assert "box: remove ~/.config/fleetctl/ollama.env" in out.replace(str(box.home), "~")
    assert not (box.home / ENV_FILE).exists()
    assert "1 node: 1 ok" in project.fleetctl("remove", "box", *QUICK).exits(0).out


def test_what_the_node_kept_of_our_own_files_is_not_what_was_before(
    project: Project, box: Machine
) -> None:
    """The state is lost, and the next apply finds files of ours."""
    project.fleetctl("apply", *QUICK).exits(0)
    rmtree(box.home / STATE)
    project.set("box", keep_alive="2h")
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleetctl("remove", "box", *QUICK).exits(0)
    assert not (box.home / ENV_FILE).exists()


def test_a_file_of_the_users_own_goes_back_without_a_restart(
    project: Project, box: Machine
) -> None:
    note = box.home / "note"
    for text in ("one", "two"):
        steps(project, {"file": {"path": "~/note", "content": text}})
        project.fleetctl("apply", *QUICK).exits(0)
    outcome = project.fleetctl("restore", "box", *QUICK).exits(0)
    assert note.read_text() == "one"
    assert "restart" not in outcome.out + outcome.err


def test_only_a_change_that_is_kept_can_be_gone_back_before(project: Project, box: Machine) -> None:
    for hours in ("1h", "2h", "3h"):
        project.set("box", keep_alive=hours)
        project.fleetctl("apply", *QUICK).exits(0)
    rmtree(box.home / STATE / "backups/1")
    shown = project.fleetctl("history", "box", "--json").exits(0).json["history"]
    assert [entry["number"] for entry in shown] == ["-", "2", "3"]
    for number in ("1", "0", "-5", "999", "x"):
        err = project.fleetctl("restore", "box", "--to", number, *QUICK).exits(5).err
        assert f"box has no backup of a change {number}" in err
        assert "it can go back before 2, 3" in err
    assert settings(box)["OLLAMA_KEEP_ALIVE"] == "3h0m0s"


def test_a_node_that_nobody_changed_has_nothing_to_restore(project: Project, box: Machine) -> None:
    assert "box has no backup" in project.fleetctl("restore", "box", *QUICK).exits(5).err


def test_what_a_run_that_was_cut_off_gave_to_ollama_is_taken_from_it(
    project: Project, box: Machine, run: Run
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    project.set("box", max_queue=77)
    project.fleetctl("apply", *QUICK).exits(0)
    state = box.home / STATE
    (state / "backups/2").rename(state / "journal")  # as if it had died before its last word
    assert "OLLAMA_MAX_QUEUE=77" in environment(run)
    project.set("box", max_queue=None)
    outcome = project.fleetctl("apply", "--json", *QUICK).exits(0).json
    assert outcome["outcomes"]["box"]["done"] == ["undo an interrupted run"]
    assert "OLLAMA_MAX_QUEUE" not in environment(run)
    undone = project.fleetctl("history", "box", "--json").exits(0).json["history"][-1]
    assert undone["outcome"] == "undone later"
    assert "OLLAMA_MAX_QUEUE" in undone["changes"] or "ollama.env" in undone["changes"]
    project.fleetctl("check").exits(0)


def test_what_no_file_sets_any_more_and_ollama_still_has_is_said(
    project: Project, box: Machine
) -> None:
    project.set("box", max_queue=77)
    project.fleetctl("apply", *QUICK).exits(0)
    project.set("box", max_queue=None)
    project.fleetctl("apply", "--only", "ollama_env", *QUICK).exits(0)
    out = project.fleetctl("check").exits(0).out
    assert "warning: Ollama runs with OLLAMA_MAX_QUEUE=77, which no file of its service sets" in out


def test_only_models_that_were_named_before_are_deleted(
    project: Project, box: Machine, run: Run
) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleet.library.install("forgotten", box.home / ".ollama/models")
    project.own(box.home)
    run("systemctl --user stop ollama")
    project.nodes["box"]["prune"] = True
    project.write()
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "not converged after all changes: delete forgotten:latest" in outcome.out
    assert "done: delete" not in outcome.err
    assert "box: delete forgotten:latest" in project.fleetctl("apply", *QUICK).exits(0).out
    project.fleetctl("check").exits(0)


def test_a_run_that_is_at_work_is_not_one_that_was_cut_off(project: Project, box: Machine) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    state = box.home / STATE
    (state / "backups/1").rename(state / "journal")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    started = Path("/proc/1/stat").read_text().rpartition(") ")[2].split()[19]
    (state / "lock").symlink_to(f"{boot}:1:{started}:abc:eve@elsewhere")
    out = project.fleetctl("check").exits(0).out
    assert "note: a run of eve@elsewhere is changing this node now" in out
    assert "cut off" not in out
