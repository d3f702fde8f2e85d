"""`check` on simulated machines: what it finds, what it says, and that it changes nothing."""

from __future__ import annotations

import pytest

from fleetsim.machine import Machine
from tests.conftest import Outcome, clean_environment
from tests.fleet_fixtures import Project, snapshot
from tests.sim.remote import (
    connect,
    drop_in,
    execute,
    until_answering,
    write,
)
from tests.terminal import on_terminal

ENV_FILE = ".config/fleetctl/ollama.env"
DROP_IN = ".config/systemd/user/ollama.service.d/zz-fleetctl.conf"


def on(machine: Machine, script: str) -> str:
    with connect(machine) as client:
        result = execute(client, script)
    assert result.code == 0, result.err
    return result.out


def restart(machine: Machine) -> None:
    on(machine, "systemctl --user daemon-reload; systemctl --user restart ollama")
    until_answering(machine)


def put_what_the_plan_says(project: Project, machine: Machine) -> None:
    """By hand, from the plan's own diff."""
    changes = project.fleetctl("check", "--json").json["nodes"][machine.name]["changes"]
    for change in changes:
        if "diff" in change:
            path = change["path"].removeprefix("~/")
            text = "".join(f"{line[1:]}\n" for line in change["diff"] if line.startswith("+"))
            write(machine, path, text)


def test_a_machine_as_installed_differs_in_exactly_the_settings(project: Project) -> None:
    machine = project.add("box", models=["tiny"])
    until_answering(machine)
    outcome = project.fleetctl("check").exits(3)
    assert outcome.out.split("\n\n")[0].splitlines() == [
        "box: OLLAMA_HOST stays 127.0.0.1:11434",
        "box: OLLAMA_KEEP_ALIVE 5m → -1 (forever)",
        "box: OLLAMA_NO_CLOUD off → on",
        f"box: write ~/{DROP_IN}",
        "box: restart Ollama, because it runs with OLLAMA_KEEP_ALIVE 5m (and 1 more)",
    ]
    assert '+OLLAMA_KEEP_ALIVE="-1"' in outcome.out
    assert outcome.out.splitlines()[-1].startswith("1 node: 1 drift (")


def test_the_next_command_is_for_the_same_inventory_nodes_and_steps(project: Project) -> None:
    until_answering(project.add("box-1"))
    project.nodes["box-2"] = {"ssh": "none", "endpoint": "http://box-2:1"}
    project.write()
    project.fleetctl.folder.joinpath("fleet.yaml").rename(project.fleetctl.folder / "my fleet.yaml")
    mine = {"FLEETCTL_INVENTORY": "my fleet.yaml"}
    file, some, kind = ("-i", "my fleet.yaml"), ("--limit", "box*,!box-2"), ("--only", "ollama_env")

    def following(*arguments: str) -> str:
        return project.fleetctl(*arguments, "--no-diff", env=mine).exits(3).err.splitlines()[-1]

    assert following("check") == "next: fleetctl apply"
    assert following("check", *file) == "next: fleetctl apply -i 'my fleet.yaml'"
    assert following("check", *some) == "next: fleetctl apply --limit 'box*,!box-2'"
    assert following("check", *kind) == "next: fleetctl apply --only ollama_env"
    assert following("plan", "box-1", "box-2", *file) == (
        "next: fleetctl apply -i 'my fleet.yaml' --limit box-1,box-2"
    )


def test_a_machine_with_exactly_the_planned_files_is_as_desired(project: Project) -> None:
    machine = project.add("box", models=["tiny"])
    project.write(models={"m": {"node": "box", "ollama_model": "tiny", "context": 4096}})
    until_answering(machine)
    put_what_the_plan_says(project, machine)
    restart(machine)
    outcome = project.fleetctl("check").exits(0)
    assert outcome.out.startswith("1 node: 1 ok")


def test_values_that_hold_already_need_no_restart(project: Project) -> None:
    machine = project.add("box")
    drop_in(machine, "mine", 'Environment="OLLAMA_KEEP_ALIVE=-1" "OLLAMA_NO_CLOUD=1"')
    restart(machine)
    out = project.fleetctl("check").exits(3).out
    assert "OLLAMA_KEEP_ALIVE stays -1 (forever)" in out
    assert "restart" not in out


def test_what_was_edited_by_hand_is_shown_as_a_diff(project: Project) -> None:
    machine = project.add("box")
    until_answering(machine)
    put_what_the_plan_says(project, machine)
    restart(machine)
    file = machine.home / ENV_FILE
    write(machine, ENV_FILE, file.read_text().replace('"-1"', '"9m"'))
    out = project.fleetctl("check").exits(3).out
    assert "box: OLLAMA_KEEP_ALIVE stays -1 (forever)" in out
    assert '-OLLAMA_KEEP_ALIVE="9m"' in out
    assert "restart" not in out
    restart(machine)
    assert "restart Ollama, because it runs with OLLAMA_KEEP_ALIVE 9m" in (
        project.fleetctl("check").exits(3).out
    )


def test_a_forgotten_reload_and_a_forgotten_restart_are_told_apart(project: Project) -> None:
    machine = project.add("box")
    until_answering(machine)
    put_what_the_plan_says(project, machine)
    assert "reload the definition" in project.fleetctl("check").exits(3).out
    on(machine, "systemctl --user daemon-reload")
    out = project.fleetctl("check").exits(3).out
    assert "reload" not in out
    assert "restart Ollama, because it runs with OLLAMA_KEEP_ALIVE 5m" in out


def test_a_file_that_wins_over_ours_is_an_obstacle(project: Project) -> None:
    machine = project.add("box")
    until_answering(machine)
    put_what_the_plan_says(project, machine)
    write(machine, "foreign.env", "OLLAMA_KEEP_ALIVE=7m\n")
    drop_in(machine, "zzz", "EnvironmentFile=%h/foreign.env")
    drop_in(machine, "aaa", "Environment=OLLAMA_NO_CLOUD=0")
    restart(machine)
    out = project.fleetctl("check").exits(3).out
    assert "foreign.env sets OLLAMA_KEEP_ALIVE=7m, and wins over fleetctl's file" in out
    assert "aaa.conf sets OLLAMA_NO_CLOUD=0 too; fleetctl's file wins" in out


def test_a_missing_model_is_the_only_difference(project: Project) -> None:
    machine = project.add("box")
    project.write(models={"m": {"node": "box", "ollama_model": "qwen3"}})
    until_answering(machine)
    put_what_the_plan_says(project, machine)
    restart(machine)
    out = project.fleetctl("check").exits(3).out
    assert out.splitlines()[0] == "box: pull qwen3:latest"


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        ("systemctl --user stop ollama", "start Ollama, because it does not run"),
        ("systemctl --user disable ollama", "start Ollama at boot"),
        ("rm .config/systemd/user/ollama.service", "the service of Ollama is masked"),
    ],
)
def test_a_service_that_is_not_as_it_should_be(prepare: str, says: str, project: Project) -> None:
    machine = project.add("box")
    until_answering(machine)
    if "rm" in prepare:
        prepare += "; systemctl --user mask ollama"
    on(machine, f"cd; {prepare}")
    assert says in project.fleetctl("check").exits(3).out


def test_a_machine_without_ollama_says_what_to_do(project: Project) -> None:
    project.add("bare", ollama="absent")
    project.add("unused", ollama="installed")
    out = project.fleetctl("check").exits(3).out
    assert "bare: obstacle: Ollama is not installed" in out
    assert "exists, but no service runs it (hint: make it a service" in out


def test_one_dead_machine_is_a_result_and_no_crash(project: Project) -> None:
    machine = project.add("box")
    project.add("other")
    project.nodes["dead"] = {"ssh": {"host": "127.0.0.1", "port": 1}, "ollama": {"host": "::1"}}
    project.write()
    until_answering(machine)
    outcome = project.fleetctl("check", "--json").exits(4).json
    states = {name: node["state"] for name, node in outcome["nodes"].items()}
    assert states == {"box": "drift", "other": "drift", "dead": "unreachable"}


def test_what_nodes_share_is_said_once(project: Project) -> None:
    for name in ("one", "two", "three"):
        machine = project.add(name)
        until_answering(machine)
    project.set("three", keep_alive="5m")
    said = project.fleetctl("check", "--no-diff").exits(3).out.splitlines()
    assert "all 3 nodes: OLLAMA_NO_CLOUD off → on" in said
    assert "one, two: OLLAMA_KEEP_ALIVE 5m → -1 (forever)" in said
    assert "three: OLLAMA_KEEP_ALIVE stays 5m" in said


def test_what_is_kept_in_the_project_is_not_for_git_and_nobody_else(project: Project) -> None:
    machine = project.add("box", trusted=False)
    state = project.fleetctl.folder / ".fleetctl"
    project.fleetctl("trust", "box", "--fingerprint", machine.fingerprint).exits(0)
    project.fleetctl("check", "--only", "wait_http").exits(0)
    assert (state / ".gitignore").read_text() == "*\n"
    assert {path.name: path.stat().st_mode & 0o077 for path in (state, state / "logs")} == {
        ".fleetctl": 0,
        "logs": 0,
    }


def test_check_writes_nothing(project: Project) -> None:
    machine = project.add("box", models=["tiny"])
    until_answering(machine)
    before = snapshot(machine.home), on(machine, "systemctl --user show ollama -p MainPID")
    project.fleetctl("check").exits(3)
    assert (
        snapshot(machine.home),
        on(machine, "systemctl --user show ollama -p MainPID"),
    ) == before


def test_an_unknown_host_key_stops_before_anything_is_sent(project: Project) -> None:
    machine = project.add("box", trusted=False)
    out = project.fleetctl("check").exits(8).out
    assert f"its host key is not known: {machine.fingerprint}" in out
    assert f"fleetctl trust box --fingerprint {machine.fingerprint}" in out


def at_a_terminal(project: Project, *arguments: str) -> Outcome:
    folder = project.fleetctl.folder
    return on_terminal(
        "fleetctl",
        *arguments,
        folder=folder,
        env=clean_environment(folder),
        answers={"Apply these changes": "n"},
    )


def test_with_yes_nobody_is_asked_about_a_host_key(project: Project) -> None:
    machine = project.add("box", trusted=False)
    shown = at_a_terminal(project, "apply", "--yes").exits(8).err
    assert f"fleetctl trust box --fingerprint {machine.fingerprint}" in shown


def test_the_question_counts_only_nodes_that_can_be_changed(project: Project) -> None:
    for name in ("box", "other"):
        machine = project.add(name)
        until_answering(machine)
    project.set("other", service="system")  # which it has not
    project.write(models={"m": {"nodes": ["box", "other"], "ollama_model": "tiny"}})
    shown = at_a_terminal(project, "apply").exits(3).err
    assert "other: pull tiny:latest" in shown
    assert "Apply these changes to 1 node?" in shown


def test_a_node_without_a_name_is_not_all_of_them(project: Project) -> None:
    project.add("box")
    assert "--limit is empty" in project.fleetctl("plan", "").exits(2).err


def test_only_looks_at_the_kinds_that_were_named(project: Project) -> None:
    machine = project.add("box")
    project.write(models={"m": {"node": "box", "ollama_model": "qwen3"}})
    until_answering(machine)
    out = project.fleetctl("check", "--only", "ollama_models").exits(3).out
    assert out.splitlines()[0] == "box: pull qwen3:latest"


def test_a_kind_of_step_that_there_is_not_is_no_kind(project: Project) -> None:
    project.add("box")
    said = project.fleetctl("check", "--only", "ollama_model").exits(2).err
    assert "--only: there is no kind of step 'ollama_model'" in said
    assert "ollama_models?" in said


def test_steps_of_the_users_own_are_part_of_the_plan(project: Project) -> None:
    machine = project.add("box")
    until_answering(machine)
    playbooks = project.fleetctl.folder / "playbooks"
    playbooks.mkdir()
    (playbooks / "apply.yaml").write_text(
        """
        steps:
          - name: a note
            file: {path: ~/note.txt, content: "hello\\n"}
          - name: once
            command: {run: touch done, creates: ~/done}
          - name: elsewhere
            os: macos
            command: {run: "false", unless: "false"}
          - name: not now
            when: node.name == 'other'
            command: {run: "false", unless: "false"}
        """
    )
    out = project.fleetctl("check").exits(3).out
    assert out.splitlines()[:2] == ["box: write ~/note.txt", "box: run: once"]
    assert "+hello" in out
    write(machine, "note.txt", "hello\n")
    write(machine, "done", "")
    project.fleetctl("check").exits(0)


def test_print_script_shows_what_would_be_sent(project: Project) -> None:
    project.add("box")
    assert (
        "ask_unit user ollama.service" in project.fleetctl("check", "--print-script").exits(0).out
    )
