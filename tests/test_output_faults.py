"""Faults of the controller's own surroundings, by their numbers in the catalogue: where the output
of a check goes to, what kind of terminal it is, and whether there is one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fleetctl.errors import Exit
from tests.conftest import clean_environment
from tests.fleet_fixtures import Project, simulated_project
from tests.sim.remote import until_answering
from tests.terminal import Meanwhile, on_terminal, resize


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with simulated_project() as project:
        machine = project.add("box")
        project.nodes["dead"] = {"ssh": {"host": "127.0.0.1", "port": 1}, "ollama": {"host": "::1"}}
        project.write()
        until_answering(machine)
        yield project


COMMANDS = """
fleetctl() { "$PYTHON" -m fleetctl "$@"; }
check() { fleetctl check "$@"; }
"""


def in_shell(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    folder = project.fleetctl.folder
    box = project.fleet.machines["box"]
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", COMMANDS + command],
        cwd=folder,
        env={
            **clean_environment(folder),
            "PYTHON": sys.executable,
            "BOX": f"{box.host}:{box.port}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("check | head -1", {Exit.UNREACHABLE, Exit.PIPE_CLOSED}),
        ("check | true", {Exit.UNREACHABLE, Exit.PIPE_CLOSED}),
        ("check >&-", {Exit.FAILED}),
        ("check 2>&-", {Exit.UNREACHABLE}),
        ("check >&- 2>&-", {Exit.FAILED}),
        ("check >/dev/full", {Exit.FAILED}),
        ("check --json >/dev/full", {Exit.FAILED}),
        ("check 2>/dev/full", {Exit.UNREACHABLE}),
    ],
)
def test_fault_67_output_that_nobody_takes_is_no_crash(
    command: str, codes: set[Exit], project: Project
) -> None:
    done = in_shell(project, command)
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if "head" in command:
        assert done.stdout == "box: OLLAMA_HOST stays 127.0.0.1:11434\n"


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("check", Exit.UNREACHABLE, "1 drift"),
        ("check --ask-sudo-password", Exit.USAGE, "cannot be asked for without a terminal"),
        ("apply --limit box", Exit.DIFFERS, "not a terminal; re-run with --yes"),
        ("provision box", Exit.DIFFERS, "not a terminal; re-run with --yes"),
        ("history box", Exit.OK, "fleetctl has changed nothing there"),
        ("restore box", Exit.FAILED, "fleetctl history box"),
        ("remove box", Exit.OK, "1 ok"),
        ("unlock box", Exit.OK, "not locked"),
        ("trust box --fingerprint SHA256:x", Exit.REFUSED, "not SHA256:x"),
        ("provision -i new/fleet.yaml --add ada@$BOX", Exit.REFUSED, "on the machine itself"),
    ],
)
def test_fault_67_where_stdin_is_closed_nobody_is_asked(
    command: str, code: Exit, says: str, project: Project
) -> None:
    done = in_shell(project, f"fleetctl {command} <&-")
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr


def test_fault_67_a_pipe_whose_reader_is_gone_ends_it_quietly(project: Project) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    folder = project.fleetctl.folder
    done = subprocess.run(
        [sys.executable, "-m", "fleetctl", "check", "--json"],
        cwd=folder,
        env=clean_environment(folder),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert done.returncode == Exit.PIPE_CLOSED
    assert "Traceback" not in done.stderr


def answer(document: dict[str, Any]) -> dict[str, Any]:
    """All but the time that it took, and findings: a simulated machine sees the processes of this
    one, and a server of somebody else's tests may come and go among them."""
    nodes = {name: {**node, "findings": None} for name, node in document["nodes"].items()}
    return {**document, "nodes": nodes, "seconds": None, "log": None, "unknown": None}


SURROUNDINGS: list[Mapping[str, str]] = [
    {"TERM": "dumb"},
    {"NO_COLOR": "1"},
    {"COLUMNS": "20"},
    {"LANG": "C"},
    {"LC_ALL": "de_DE.ISO-8859-1"},
    {"LC_ALL": "nonsense"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},  # ASCII, whatever happens
]


@pytest.mark.parametrize("env", SURROUNDINGS, ids=str)
def test_fault_68_without_a_terminal_the_answer_is_the_same(
    env: Mapping[str, str], project: Project
) -> None:
    usual = project.fleetctl("check", "--json").exits(4)
    found = project.fleetctl("check", "--json", env=env).exits(4)
    assert answer(found.json) == answer(usual.json)
    plain = project.fleetctl("check", env=env).exits(4)
    assert "\x1b" not in plain.out + plain.err + found.out + found.err


def shown(project: Project, meanwhile: Meanwhile | None = None, **env: str) -> str:
    """What a terminal of 20 columns gets of a check."""
    folder = project.fleetctl.folder
    whole = {**clean_environment(folder), **env}
    outcome = on_terminal(
        "fleetctl", "check", folder=folder, env=whole, size=(24, 20), meanwhile=meanwhile
    )
    return outcome.exits(4).err


def storm(terminal: int, process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):  # it has gone
        while process.poll() is None:
            for columns in (1, 20, 0, 300):
                resize(terminal, 24, columns)
                process.send_signal(signal.SIGWINCH)
                time.sleep(0.002)


def test_fault_68_a_terminal_that_is_too_simple_for_escape_codes_gets_none(
    project: Project,
) -> None:
    assert "\x1b" not in shown(project, TERM="dumb")
    assert "\x1b[3" not in shown(project, TERM="xterm", NO_COLOR="1")


@pytest.mark.parametrize("env", [{}, {"LANG": "C"}, {"LC_ALL": "nonsense"}], ids=str)
def test_fault_68_a_narrow_terminal_in_a_storm_of_sizes_gets_the_same_answer(
    env: Mapping[str, str], project: Project
) -> None:
    text = shown(project, storm, TERM="xterm", **env)
    assert "127.0.0.1:1 refused the connection" in text
    assert "2 nodes: 1 drift, 1 unreachable (" in text
