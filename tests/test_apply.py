"""`apply` and its relatives on simulated machines: what they do, what they say, what is left."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from fleetsim.machine import Machine
from tests.conftest import ROOT, finished
from tests.disturbed import Disturbance
from tests.fleet_fixtures import Project, snapshot
from tests.sim.remote import answering, until_answering

ENV_FILE = ".config/fleetctl/ollama.env"
STATE = ".local/state/fleetctl"
QUICK = ("--yes", "--health-timeout", "12", "--settle", "0.2")


@pytest.fixture
def box(project: Project) -> Machine:
    machine = project.add("box")
    until_answering(machine)
    return machine


def settings(machine: Machine) -> dict[str, str]:
    lines = (machine.home / ENV_FILE).read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if not line.startswith("#"))
    return {name: value.strip('"') for name, value in pairs}


def test_apply_makes_what_check_found_and_the_second_time_nothing(
    project: Project, box: Machine
) -> None:
    project.fleetctl("check").exits(3)
    project.write(
        models={"small": {"node": "box", "ollama_model": "qwen3"}},
        agents={"planner": {"model": "small", "description": "plans"}},
    )
    outcome = project.fleetctl("apply", *QUICK).exits(0)
    assert "planner  →  qwen3:latest on box" in outcome.out
    assert "box: done: pull qwen3:latest" in outcome.err
    assert settings(box)["OLLAMA_KEEP_ALIVE"] == "-1"
    project.fleetctl("check").exits(0)
    before = snapshot(box.home)
    assert "1 node: 1 ok" in project.fleetctl("apply", *QUICK).exits(0).out
    assert snapshot(box.home) == before


def test_without_a_terminal_and_without_yes_the_plan_is_all_there_is(
    project: Project, box: Machine
) -> None:
    before = snapshot(box.home)
    for arguments in (["apply"], ["apply", "--json"], ["provision"], ["remove", "box"], ["plan"]):
        outcome = project.fleetctl(*arguments)
        assert outcome.code == (0 if arguments[0] == "remove" else 3), outcome
    assert "not a terminal; re-run with --yes" in project.fleetctl("apply").err
    project.fleetctl("apply", "--dry-run", "--yes").exits(3)
    assert snapshot(box.home) == before


def test_settings_that_kill_ollama_are_taken_back(project: Project, box: Machine) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    before = settings(box)
    box.behave(crash_on_start=True, when={"OLLAMA_KV_CACHE_TYPE": "q8_0"})
    project.set("box", kv_cache_type="q8_0")
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "box: rolled back: Ollama" in outcome.out
    assert "hint: fleetctl check --limit box" in outcome.out
    assert settings(box) == before
    assert answering(box)
    project.set("box", kv_cache_type=None)
    project.fleetctl("check").exits(0)


def test_a_model_that_cannot_be_had_is_a_failure_of_the_model_only(
    project: Project, box: Machine
) -> None:
    box.behave(pull_faults={"tiny:latest": "end"})
    mapped = {"a": {"node": "box", "ollama_model": "tiny"}}
    project.write(models=mapped | {"b": {"node": "box", "ollama_model": "qwen3"}})
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "pull tiny:latest: the download ended before it was complete" in outcome.out
    assert "box: done: pull qwen3:latest" in outcome.err
    assert settings(box)["OLLAMA_MAX_LOADED_MODELS"] == "2"


def test_events_are_objects_of_one_line_and_end_with_the_outcome(
    project: Project, box: Machine
) -> None:
    lines = project.fleetctl("apply", "--json-events", *QUICK).exits(0).out.splitlines()
    events = [json.loads(line) for line in lines]
    assert {event["format"] for event in events} == {1}
    names = [event["event"] for event in events]
    assert names[:3] == ["gathered", "gathered", "planned"]
    assert names[-1] == "ended"
    assert {"did", "doing"} <= set(names)
    assert events[-1]["state"] == "changed"
    document = project.fleetctl("apply", "--json", *QUICK).exits(0).json
    assert document["nodes"]["box"]["state"] == "ok"
    assert document["outcomes"] == {}


def test_a_users_own_steps_are_carried_out_and_a_guard_may_need_a_second_pass(
    project: Project, box: Machine
) -> None:
    folder = project.fleetctl.folder / "playbooks"
    folder.mkdir()
    steps = [
        {"import": "built-in.yaml"},
        {"name": "late", "command": {"run": "touch ~/late", "unless": "test ! -e ~/first"}},
        {"file": {"path": "~/first", "content": "one'\n%", "mode": "0600"}},
    ]
    built_in = Path(__file__).parents[1] / "playbooks" / "apply.yaml"
    (folder / "built-in.yaml").write_text(built_in.read_text())
    (folder / "apply.yaml").write_text(json.dumps({"steps": steps}))
    outcome = project.fleetctl("apply", *QUICK)
    assert (box.home / "first").read_text() == "one'\n%"
    assert (box.home / "first").stat().st_mode & 0o777 == 0o600
    assert (box.home / "late").exists()
    assert "box: done: run: late" in outcome.err
    outcome.exits(5)  # its guard never turns true, and that is said
    assert "not converged after all changes: run: late" in outcome.out


def test_a_command_that_fails_takes_the_files_back_and_shows_its_last_words(
    project: Project, box: Machine
) -> None:
    folder = project.fleetctl.folder / "playbooks"
    folder.mkdir()
    steps = [
        {"file": {"path": "~/motd", "content": "hello\n"}},
        {"name": "wrong", "command": {"run": "echo last words; exit 3", "creates": "~/never"}},
    ]
    (folder / "apply.yaml").write_text(json.dumps({"steps": steps}))
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "box: rolled back: run: wrong" in outcome.out
    assert "  | last words" in outcome.out
    assert not (box.home / "motd").exists()


def test_what_helps_against_several_obstacles_is_said_once(project: Project, box: Machine) -> None:
    folder = project.fleetctl.folder / "playbooks"
    folder.mkdir()
    steps = [{"file": {"path": f"~/{name}", "content": ""}} for name in ("a", "b")]
    (folder / "apply.yaml").write_text(json.dumps({"steps": steps}))
    for name in ("a", "b"):
        (box.home / name).mkdir()
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "box: failed: not changed because of the findings above\n" in outcome.out
    assert "  hint: move it out of the way\n" in outcome.out


@pytest.mark.parametrize(("heard", "code"), [(signal.SIG_IGN, 0), (signal.SIG_DFL, 143)])
def test_a_signal_that_is_ignored_at_the_start_stays_ignored(
    heard: signal.Handlers, code: int, project: Project, box: Machine
) -> None:
    hangup = Disturbance(when="restarted", what="SIGHUP")
    before = signal.signal(signal.SIGHUP, heard)  # which whoever is started inherits, as by nohup
    try:
        run = project.fleetctl.start(
            *hangup.arguments, "apply", *QUICK, env={"PYTHONPATH": str(ROOT)}
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ("finishing what has begun" in finished(run).exits(code).err) == (code != 0)
    project.fleetctl("check").exits(0)


def test_numbers_that_no_change_has_are_no_news(project: Project, box: Machine) -> None:
    """What a node says is a stranger's word."""
    lies = Disturbance(replace={'say did "$number"': "say did 99; say did x; say did -1"})
    run = project.fleetctl.start(*lies.arguments, "apply", *QUICK, env={"PYTHONPATH": str(ROOT)})
    assert "done:" not in finished(run).exits(0).err
    project.fleetctl("check").exits(0)


@pytest.mark.slow
def test_history_restore_and_remove_lead_back(project: Project, box: Machine) -> None:
    untouched = snapshot(box.home)
    project.fleetctl("provision", "box", *QUICK).exits(0)
    project.set("box", keep_alive="2h")
    project.fleetctl("apply", *QUICK).exits(0)
    project.set("box", keep_alive="3h")
    project.fleetctl("apply", *QUICK).exits(0)
    entries = project.fleetctl("history", "box", "--json").exits(0).json["history"]
    assert [entry["number"] for entry in entries] == ["1", "2", "3"]
    assert all(entry["outcome"] == "applied" and "@" in entry["owner"] for entry in entries)
    project.fleetctl("restore", "box", *QUICK).exits(0)
    assert settings(box)["OLLAMA_KEEP_ALIVE"] == "2h0m0s"
    project.fleetctl("restore", "box", "--to", "2", *QUICK).exits(0)
    assert settings(box)["OLLAMA_KEEP_ALIVE"] == "-1"
    assert "5" in project.fleetctl("history", "box").out
    project.fleetctl("remove", "box", *QUICK).exits(0)
    left = {path: size for path, (_, _, size) in snapshot(box.home).items()}
    assert left.keys() == untouched.keys()
    assert "nothing there" in project.fleetctl("history", "box").exits(0).out
    assert answering(box)


def test_remove_can_take_the_models_too(project: Project, box: Machine) -> None:
    project.write(models={"m": {"node": "box", "ollama_model": "tiny"}})
    project.fleetctl("apply", *QUICK).exits(0)
    outcome = project.fleetctl("remove", "box", "--models", *QUICK).exits(0)
    assert "box: delete tiny:latest" in outcome.out
    assert "box: done: delete tiny:latest" in outcome.err


def test_a_lock_is_named_respected_and_taken_away(project: Project, box: Machine) -> None:
    folder = box.home / STATE
    folder.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    started = Path("/proc/1/stat").read_text().rpartition(") ")[2].split()[19]
    (folder / "lock").symlink_to(f"{boot}:1:{started}:abc:eve@elsewhere")
    for path in (folder, folder.parent, folder.parent.parent):
        project.own(path)
    outcome = project.fleetctl("apply", *QUICK).exits(7)
    assert "box: locked: locked by eve@elsewhere" in outcome.out
    assert "fleetctl unlock box" in outcome.out
    project.fleetctl("unlock", "box").exits(3)
    assert (
        "unlocked, was held by eve@elsewhere"
        in project.fleetctl("unlock", "box", "--yes").exits(0).out
    )
    assert "not locked" in project.fleetctl("unlock", "box").exits(0).out
    project.fleetctl("apply", *QUICK).exits(0)


def test_what_was_cut_off_is_found_undone_and_made_up_for(project: Project, box: Machine) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    state = box.home / STATE
    (state / "backups" / "1").rename(state / "journal")
    assert "undo an interrupted run" in project.fleetctl("check").exits(3).out
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleetctl("check").exits(0)
    assert not (state / "journal").exists()
    outcomes = [
        entry["outcome"] for entry in project.fleetctl("history", "box", "--json").json["history"]
    ]
    assert outcomes == ["applied", "undone later", "applied"]


def test_provision_begins_nothing_before_all_are_ready(project: Project, box: Machine) -> None:
    project.add("bare", ollama="absent")
    before = snapshot(box.home)
    outcome = project.fleetctl("provision", *QUICK).exits(5)
    assert "bare: obstacle:" in outcome.out
    assert "box: skipped: another node is not ready" in outcome.out
    assert snapshot(box.home) == before
    outcome = project.fleetctl("provision", "stranger").exits(2)
    assert "fleetctl provision --add stranger" in outcome.err
    project.fleetctl("provision", "box", *QUICK).exits(0)


def test_an_old_ollama_and_a_port_that_is_taken_are_obstacles(
    project: Project, box: Machine
) -> None:
    box.behave(version="0.12.3")
    box.reboot()
    until_answering(box)
    project.set("box", host="127.0.0.1:8080")
    (box.folder / "proc/net/tcp").write_text("0: 00000000:1F90 00000000:0000 0A\n")
    out = project.fleetctl("provision", *QUICK).exits(5).out
    assert "Ollama 0.12.3 is older than 0.17.1" in out
    assert "port 8080 is taken by a program that is not Ollama" in out


def test_prune_deletes_what_nothing_maps_after_the_restart(project: Project, box: Machine) -> None:
    project.fleet.library.install("forgotten", box.home / ".ollama/models")
    project.own(box.home)
    project.write(models={"m": {"node": "box", "ollama_model": "tiny"}})
    project.nodes["box"]["prune"] = True
    project.write()
    outcome = project.fleetctl("apply", *QUICK).exits(0)
    done = [line.partition("done: ")[2] for line in outcome.err.splitlines() if "done: " in line]
    assert done[-3:] == ["restart Ollama", "pull tiny:latest", "delete forgotten:latest"]
    project.fleetctl("check").exits(0)


def test_a_broken_playbook_keeps_nobody_from_the_history(project: Project, box: Machine) -> None:
    project.fleetctl("apply", *QUICK).exits(0)
    (project.fleetctl.folder / "playbooks").mkdir()
    project.fleetctl.write("steps: none", "playbooks/apply.yaml")
    assert "has no list of 'steps'" in project.fleetctl("check").exits(2).err
    assert "restart Ollama" in project.fleetctl("history", "box").exits(0).out
    project.fleetctl("remove", "box", *QUICK).exits(0)


def test_only_what_is_asked_for_is_done(project: Project, box: Machine) -> None:
    project.write(models={"m": {"node": "box", "ollama_model": "tiny"}})
    outcome = project.fleetctl("apply", "--only", "ollama_models", *QUICK).exits(0)
    assert "done: pull tiny:latest" in outcome.err
    assert not (box.home / ENV_FILE).exists()
