"""The command line as a user meets it: exit codes, streams, JSON, terminals that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from fleetctl.cli import cli, guard
from fleetctl.errors import Exit
from tests.conftest import ROOT, FleetctlIn, clean_environment
from tests.terminal import on_terminal

VALID = """
groups: {minis: {}}
nodes: {mini: {groups: [minis], tags: [heavy]}, box: {ssh: {host: box.local}}}
models: {coder: {node: mini, ollama_model: "qwen3"}}
agents: {planner: {model: coder, description: Plans.}}
"""

HEAVY = {"fabric", "invoke", "paramiko", "httpx", "jinja2", "pydantic", "rich", "yaml"}


def test_init_then_validate_in_an_empty_folder(fleetctl: FleetctlIn) -> None:
    fleetctl("init").exits(0)
    text = (fleetctl.folder / "fleet.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=.fleetctl/schema.json\n")
    schema = json.loads((fleetctl.folder / ".fleetctl" / "schema.json").read_text())
    assert "nodes" in schema["properties"]
    assert (fleetctl.folder / ".fleetctl").stat().st_mode & 0o777 == 0o700
    assert "4 nodes, 2 models, 2 agents" in fleetctl("validate", "--strict").exits(0).out


def test_init_never_overwrites_and_loses_nothing_by_force(fleetctl: FleetctlIn) -> None:
    mine = fleetctl.write("# mine\n")
    assert "--force" in fleetctl("init").exits(2).err
    assert mine.read_text() == "# mine\n"
    backup = fleetctl("init", "--force", "--json").exits(0).json["backup"]
    assert (fleetctl.folder / backup).read_text() == "# mine\n"
    fleetctl("validate").exits(0)
    (fleetctl.folder / "folder").mkdir()
    assert "not a regular file" in fleetctl("init", "--force", "-o", "folder").exits(2).err


def test_init_into_an_inventory_folder_points_at_the_schema_of_the_project(
    fleetctl: FleetctlIn,
) -> None:
    fleetctl("init", "--output", "inventory/fleet.yaml").exits(0)
    text = (fleetctl.folder / "inventory" / "fleet.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../.fleetctl/schema.json\n")
    assert (fleetctl.folder / ".fleetctl" / "schema.json").exists()
    fleetctl("validate").exits(0)


def test_init_says_how_to_validate_what_it_wrote(fleetctl: FleetctlIn) -> None:
    assert fleetctl("init").err == "next: edit its nodes, then run fleetctl validate\n"
    said = fleetctl("init", "-o", "my fleet.yaml").exits(0).err
    assert said == (
        "next: edit its nodes, then run fleetctl validate -i 'my fleet.yaml'\n"
        "without -i, fleet.yaml is the inventory\n"
    )


def test_init_where_it_may_not_write_says_so(fleetctl: FleetctlIn) -> None:
    fleetctl.write("a file", "folder")
    assert "cannot be written" in fleetctl("init", "-o", "folder/fleet.yaml").exits(5).err


def test_init_says_how_the_file_is_named_that_no_command_would_find(fleetctl: FleetctlIn) -> None:
    assert (
        fleetctl("init", "-o", "my fleet.yaml")
        .exits(0)
        .err.endswith("validate -i 'my fleet.yaml'\n")
    )
    assert fleetctl("init", "-o", "inventory/fleet.yaml").exits(0).err.endswith("validate\n")
    said = fleetctl("init").exits(0).err
    assert "fleetctl validate -i fleet.yaml\nwithout -i, inventory/fleet.yaml is" in said


def test_init_writes_no_inventory_where_it_cannot_keep_its_own_files(fleetctl: FleetctlIn) -> None:
    fleetctl.write("a file", ".fleetctl")
    assert ".fleetctl cannot be written: File exists" in fleetctl("init").exits(5).err
    assert not (fleetctl.folder / "fleet.yaml").exists()


def test_ansible_gets_groups_and_tags_as_groups(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    told = fleetctl("inventory", "--ansible").exits(0).json
    assert told["all"] == {"children": ["minis", "tag_heavy", "ungrouped"]}
    assert told["minis"] == told["tag_heavy"] == {"hosts": ["mini"]}
    assert told["ungrouped"] == {"hosts": ["box"]}


@pytest.mark.parametrize(
    ("groups", "tags", "why"),
    [
        ("all", "", "group all would become the Ansible group all, which is every host"),
        ("ungrouped", "", "group ungrouped would become the Ansible group ungrouped"),
        ("web-1, web_1", "", "the Ansible group web_1, which is group web-1"),
        ("tag_x", "x", "tag x would become the Ansible group tag_x, which is group tag_x"),
    ],
)
def test_two_groups_are_never_one_to_ansible(
    groups: str, tags: str, why: str, fleetctl: FleetctlIn
) -> None:
    named = "".join(f"{group}: , " for group in groups.split(", "))
    fleetctl.write(f"groups: {{{named}}}\nnodes: {{a: {{groups: [{groups}], tags: [{tags}]}}}}")
    assert why in fleetctl("inventory", "--ansible").exits(2).err


def test_the_inventory_is_found_by_option_environment_and_place(fleetctl: FleetctlIn) -> None:
    assert "fleetctl init" in fleetctl("validate").exits(2).err
    fleetctl.write(VALID)
    assert fleetctl("validate").exits(0).out.startswith("fleet.yaml:")
    (fleetctl.folder / "inventory").mkdir()
    fleetctl.write(VALID, "inventory/fleet.yaml")
    assert fleetctl("validate").exits(0).out.startswith("inventory/fleet.yaml:")
    fleetctl.write(VALID, "other.yaml")
    named = {"FLEETCTL_INVENTORY": "other.yaml"}
    assert fleetctl("validate", env=named).exits(0).out.startswith("other.yaml:")
    for option in ("-i", "--inventory", "--config"):
        given = fleetctl("validate", option, "fleet.yaml", env=named).exits(0)
        assert given.out.startswith("fleet.yaml:")


def test_warnings_pass_unless_strict(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID + "gateway: {host: 0.0.0.0}\n")
    outcome = fleetctl("validate").exits(0)
    assert "fleet.yaml:6:11: warning: gateway.host: " in outcome.err
    fleetctl("validate", "--strict").exits(2)
    assert fleetctl("validate", "--json").exits(0).json["warnings"][0]["line"] == 6


def test_inventory_shows_values_and_their_origins(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    out = fleetctl("inventory", "--limit", "mini").exits(0).out
    assert "ollama.keep_alive         -1" in out
    assert "derived: number of models mapped here" in out
    assert "planner  →  qwen3:latest on mini" in out
    assert "box" not in out
    tree = fleetctl("inventory", "--graph").exits(0).out
    assert tree.splitlines() == [
        "fleet",
        "├─ @minis",
        "│  └─ mini  http://mini:11434",
        "│     └─ coder = qwen3:latest  ← planner",
        "└─ (no group)",
        "   └─ box  http://box.local:11434",
    ]


def test_inventory_as_json_says_where_values_come_from(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    document = fleetctl("inventory", "--json").exits(0).json
    assert document["format"] == 1
    assert document["nodes"]["mini"]["ollama.keep_alive"] == {"value": "-1", "origin": "built-in"}
    assert document["models"]["coder"]["litellm_alias"] == "fleet-coder"


def test_help_fits_on_a_terminal(fleetctl: FleetctlIn) -> None:
    text = fleetctl("--help").exits(0).out
    assert "..." not in text.partition("Commands:")[2]
    assert max(map(len, text.splitlines())) < 80


def test_docs_are_listed_and_shown(fleetctl: FleetctlIn) -> None:
    listed = fleetctl("docs").exits(0).out
    sections = ["project", "gateway", "defaults", "groups", "nodes", "models", "agents"]
    assert listed.splitlines()[-1].split(": ")[1] == ", ".join(sections)
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem in listed.split()
        assert fleetctl("docs", page.stem).exits(0).out == page.read_text()
    assert "master_key_env: LITELLM_MASTER_KEY" in fleetctl("docs", "gateway").exits(0).out
    assert "did you mean nodes?" in fleetctl("docs", "node").exits(2).err


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --no")]
)
def test_completion_scripts_call_back(shell: str, word: str, fleetctl: FleetctlIn) -> None:
    assert word in fleetctl("completion", shell).exits(0).out
    answer = {"_FLEETCTL_COMPLETE": f"{shell}_complete", "COMP_WORDS": "fleetctl val"}
    words = {**answer, "COMP_CWORD": "val" if shell == "fish" else "1"}
    assert "validate" in fleetctl(env=words).exits(0).out


def test_json_everywhere_is_one_document_at_any_width(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID.replace("qwen3", "registry.example.net/a-long-name/" + "x" * 70))
    commands: list[list[str]] = [
        ["validate"], ["inventory"], ["inventory", "--limit", "box"], ["schema"], ["docs"],
        ["docs", "nodes"], ["completion", "bash"], ["init", "-o", "new.yaml"],
    ]  # fmt: skip
    with_hosts = {
        "check",
        "plan",
        "apply",
        "provision",
        "history",
        "restore",
        "remove",
        "unlock",
        "trust",
        "demo",
    }  # shown where there are hosts
    assert {command[0] for command in commands} == set(cli.commands) - with_hosts
    for command in commands:
        outcome = fleetctl(*command, "--json", env={"COLUMNS": "20"}).exits(0)
        assert isinstance(outcome.json, dict), command


@pytest.mark.parametrize(
    "arguments",
    [["validate"], ["validate", "--nonsense"], ["inventory", "--limit", "x"], ["docs", "nothing"]],
)
def test_errors_are_json_too_when_json_was_asked_for(
    arguments: list[str], fleetctl: FleetctlIn
) -> None:
    fleetctl.write("nodes: {a: {b: 1}}" if arguments == ["validate"] else VALID)
    error = fleetctl(*arguments, "--json").exits(2).json["error"]
    assert error["exit_code"] == 2
    assert error["message"]
    if arguments == ["validate"]:
        assert error["problems"][0]["path"] == "nodes.a.b"


def test_usage_errors_suggest_what_was_meant(fleetctl: FleetctlIn) -> None:
    assert "Did you mean 'validate'?" in fleetctl("vlaidate").exits(2).err
    assert "fleetctl inventory --help" in fleetctl("inventory", "--grph").exits(2).err
    assert "Usage: fleetctl" in fleetctl().exits(2).err
    assert "Choose one" in fleetctl("inventory", "--graph", "--json").exits(2).err


@pytest.mark.parametrize(
    "env",
    [
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"COLUMNS": "20"},
        {"LANG": "C"},
        {"LC_ALL": "de_DE.ISO-8859-1"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "nonsense"},
    ],
    ids=str,
)
def test_any_environment_gets_the_same_answer(env: dict[str, str], fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    usual = fleetctl("inventory", "--json").exits(0).out
    assert fleetctl("inventory", "--json", env=env).exits(0).out == usual
    assert "\x1b" not in fleetctl("inventory", env=env).exits(0).out
    fleetctl.write("nodes: {}\nnodes: {}")
    assert "appears twice" in fleetctl("validate", env=env).exits(2).err


def run_with(stdout: int, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleetctl", *arguments],
        cwd=folder,
        env=clean_environment(folder),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_output_that_cannot_be_written_is_a_failure(fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    for arguments in (["schema"], ["inventory"], ["validate"], ["--help"], ["--version"]):
        with Path("/dev/full").open("w") as full:
            done = run_with(full.fileno(), *arguments, folder=fleetctl.folder)
        assert done.returncode == Exit.FAILED, arguments
        assert done.stderr == "error: the result cannot be written: No space left on device\n"


def test_a_closed_pipe_ends_it_quietly(fleetctl: FleetctlIn) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_with(writer, "schema", folder=fleetctl.folder)
    os.close(writer)
    assert (done.returncode, done.stderr) == (Exit.PIPE_CLOSED, "")


@pytest.mark.parametrize(
    ("closing", "code"), [(">&-", Exit.FAILED), ("2>&-", Exit.OK), ("<&-", Exit.OK)]
)
def test_closed_streams_are_no_surprise(closing: str, code: Exit, fleetctl: FleetctlIn) -> None:
    fleetctl.write(VALID)
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m fleetctl validate {closing}'],
        cwd=fleetctl.folder,
        env=clean_environment(fleetctl.folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_gets_colour_and_a_dumb_one_does_not(fleetctl: FleetctlIn) -> None:
    fleetctl.write("nodes: 1")

    def shown(**env: str) -> str:
        whole = {**clean_environment(fleetctl.folder), **env}
        return on_terminal("fleetctl", "validate", folder=fleetctl.folder, env=whole).exits(2).err

    assert "\x1b[" in shown(TERM="xterm")
    assert "\x1b[" not in shown(TERM="dumb")
    assert "\x1b[" not in shown(TERM="xterm", NO_COLOR="1")


def test_control_characters_never_reach_the_terminal(fleetctl: FleetctlIn) -> None:
    fleetctl.write('nodes: {"a\\e[31mb": {}, "c\\u202ed": {}}')
    err = fleetctl("validate").exits(2).err
    assert "a\\x1b[31mb" in err
    assert "c\\u202ed" in err
    assert "\x1b" not in err
    assert "\x1b" not in fleetctl("validate", "--\x1b[31m").exits(2).err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_signals_end_it_with_their_own_code(
    number: signal.Signals, code: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def slow() -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored in the background
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert guard.run(slow, []) == code
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "Traceback" not in capsys.readouterr().err


def test_a_look_that_nohup_started_does_not_end_with_its_terminal() -> None:
    @click.command()
    def patient() -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert guard.run(patient, []) == Exit.OK
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_bug_is_reported_without_a_traceback_unless_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    @click.option("--debug", is_flag=True, expose_value=False)
    def broken() -> None:
        raise RuntimeError("oh")

    assert guard.run(broken, []) == Exit.BUG
    err = capsys.readouterr().err
    assert "this is a bug in fleetctl: RuntimeError: oh (test_cli.py:" in err
    assert "Traceback" not in err
    assert guard.run(broken, ["--debug"]) == Exit.BUG
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["inventory", "--help"], ["nonsense"], ["validate", "--nonsense"]],
)
def test_what_must_answer_at_once_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom fleetctl.cli import cli, guard\n"
        f"guard.run(cli, {arguments!r})\n"
        f"print(sorted(set(sys.modules) & {HEAVY!r}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_every_command_has_help_that_fits(fleetctl: FleetctlIn) -> None:
    for name in cli.commands:
        out = fleetctl(name, "--help").exits(0).out
        assert "--json" in out
        assert max(map(len, out.splitlines())) <= 80


def test_exit_codes_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "exit-codes.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == [f"| {int(code)} | {code.meaning} |" for code in Exit]


def test_the_worst_result_speaks_for_all() -> None:
    order = [Exit.DIRTY, Exit.INTERRUPTED, Exit.REFUSED, Exit.FAILED, Exit.UNREACHABLE]
    order += [Exit.LOCKED, Exit.DIFFERS, Exit.OK]
    for at, worse in enumerate(order):
        for better in order[at:]:
            assert Exit.worst([better, worse]) == worse
    assert Exit.worst([]) == Exit.OK


NUMBERS = [
    ("--timeout", ["-5", "0", "nan", "inf", "1e300", "soon"]),
    ("--health-timeout", ["-1", "0", "nan", "inf"]),
    ("--settle", ["-1", "nan", "inf"]),
    ("--forks", ["0", "-1", "1.5", "many"]),
    ("--serial", ["0", "00", "-1", "101%", "few"]),
    ("--max-fail", ["-1", "101%"]),
]


@pytest.mark.parametrize(
    ("option", "number"), [(option, each) for option, numbers in NUMBERS for each in numbers]
)
def test_a_number_that_cannot_be_meant_is_wrong_usage(
    option: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard.run(cli, ["apply", f"{option}={number}"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert f"Invalid value for '{option}'" in said
    assert "fleetctl apply --help" in said


def test_trust_waits_for_a_number_of_seconds_too(fleetctl: FleetctlIn) -> None:
    assert "not a number of seconds" in fleetctl("trust", "box", "--timeout", "nan").exits(2).err


def test_nothing_is_a_time_to_settle_and_a_number_of_failures(fleetctl: FleetctlIn) -> None:
    fleetctl.write('nodes: {cloud: {ssh: none, endpoint: "http://c:1"}}')
    fleetctl("apply", "--settle", "0", "--max-fail", "0", "--serial", "0%").exits(0)


@pytest.mark.parametrize("command", ["history", "restore", "remove", "unlock", "trust"])
def test_commands_for_one_node_want_its_name(command: str, fleetctl: FleetctlIn) -> None:
    fleetctl.write('nodes: {box-1: {}, box-2: {}, cloud: {ssh: none, endpoint: "http://c:1"}}')
    for name, says in {"box*": "is not in", "boks-1": "box-1", "cloud": "only routed to"}.items():
        assert says in fleetctl(command, name).exits(2).err
