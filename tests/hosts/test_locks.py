"""Two controllers at one node: one writes, the other is told who; the dead hold nothing."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import Outcome, finished
from tests.disturbed import Disturbance
from tests.hosts.managed import QUICK, Manage, Managed
from tests.hosts.project import LabProject

pytestmark = [pytest.mark.host, pytest.mark.ollama]

SCOPES = ["user", "installer"]
ROUNDS = 50


def rivals(managed: Managed, folder: Path) -> list[LabProject]:
    """Two controllers with the same inventory."""
    made = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        made.append(LabProject(managed.lab, folder / name))
        made[-1].add(managed.node)
    return made


def both(projects: list[LabProject], keep_alive: str) -> list[Outcome]:
    runs = []
    for project in projects:
        for node in project.nodes.values():
            node["ollama"] = {"keep_alive": keep_alive}
        runs.append(project.start("fleetctl", "apply", *QUICK))
    with ThreadPoolExecutor() as pool:
        return list(pool.map(finished, runs))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_64_of_two_controllers_one_writes_and_the_other_is_told_who(
    kinds: str, manage: Manage, tmp_path: Path
) -> None:
    managed = manage(kinds)
    managed.apply().exits(0)
    projects = rivals(managed, tmp_path)
    lines = managed.seen().log
    found = Counter[tuple[int, ...]]()
    rounds = ROUNDS // len(SCOPES)
    for number in range(1, rounds + 1):
        ends = both(projects, f"{number}m")
        codes = tuple(sorted(end.code for end in ends))
        found[codes] += 1
        log = managed.seen().log
        assert len(log) == len(lines) + 1, (codes, log)
        assert log[: len(lines)] == lines
        lines = log
        assert codes[0] == 0, ends
        said = max(ends, key=lambda end: end.code).out
        if codes[1] == 7:
            assert f"locked by {log[-1].split(chr(9))[2]}" in said
        elif codes[1] == 5:  # it came after the other was done, with a plan from before
            assert "has changed since the plan" in said
        else:
            assert codes == (0, 0)
        assert managed.seen().effective("OLLAMA_KEEP_ALIVE") == duration(number)
        assert managed.seen().left == ""
    numbers = [int(line.split("\t")[0]) for line in lines]
    assert numbers == list(range(1, len(lines) + 1)), "the history is linear"
    print(f"{kinds}: {rounds} rounds, one writer in each: {dict(found)}")
    assert found[0, 7] > 0


def duration(minutes: int) -> str:
    return f"{minutes}m0s"


@pytest.mark.parametrize("kinds", SCOPES)
def test_what_is_dead_holds_no_lock(kinds: str, manage: Manage) -> None:
    """A session whose shell was killed, and one whose node was."""
    managed = manage(kinds)
    managed.want("A")
    managed.apply().exits(0)
    holding = Disturbance(step=6, does="sleep 60")
    for letter, kill in (("B", "shell"), ("C", "node")):
        managed.want(letter)
        run = managed.project.start(*holding.arguments, "apply", *QUICK, "--timeout", "5")
        wait_for_lock(managed)
        managed.want("D")
        assert "locked by" in managed.apply().exits(7).out
        run.kill()
        run.communicate()
        assert managed.seen().left  # it sleeps, and knows nothing of our death
        if kill == "shell":
            pid = managed.run(f"readlink {managed.place['state']}/lock").split(":")[1]
            managed.run(f"kill -9 {pid}; pkill -x sleep || true")
        else:
            managed.node.cut_power()
            managed.node.start()
            managed.node.wait()
        managed.apply().exits(0)
        assert managed.seen().left == ""


def wait_for_lock(managed: Managed) -> None:
    deadline = time.monotonic() + 60
    while "lock" not in managed.seen().left:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("skew", ["-1 day", "+1 day"])
def test_fault_65_a_wrong_clock_on_the_node_changes_nothing(skew: str, manage: Manage) -> None:
    """No clock is asked about a lock; a `date` that is wrong is as good as a wrong clock."""
    managed = manage("user")
    shim = f'#!/bin/sh\nexec /bin/date -d "{skew}" "$@"\n'
    managed.node.write("/usr/local/bin/date", shim)
    managed.run("chmod 755 /usr/local/bin/date")
    managed.want("A")
    managed.apply().exits(0)
    when = managed.seen().log[0].split("\t")[1]
    assert when[:10] != managed.run("/bin/date -u +%F"), "the shim was used"
    managed.want("B")
    managed.disturbed(Disturbance(step=6, does="kill -9 $$")).exits(5)
    managed.apply().exits(0)
    managed.project("check").exits(0)
    history = managed.project("history", managed.node.name, "--json").exits(0).json["history"]
    assert [entry["number"] for entry in history if entry["number"] != "-"] == ["1", "2"]
    print(json.dumps(history))
