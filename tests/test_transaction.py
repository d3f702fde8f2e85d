"""The transaction under dash, killed wherever it can be: old or new, and the next run mends it."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from fleetctl import shell
from fleetctl.model.plan import (
    Action,
    Forget,
    Restart,
    RunCommand,
    ServiceAction,
    TransactionChange,
)
from fleetctl.shell import transaction
from tests.conftest import needs_shell
from tests.disturbed import at_step
from tests.local_node import LocalNode, dying_at_command
from tests.test_shell import SHELLS

SCRIPT = Path(shell.__file__).with_name("transaction.sh").read_text()
CALLS = inspect.getsource(transaction._operations)
DIES = "kill -9 $$"

KINDS = ("apply", "remove")
WANTED: Mapping[str, Mapping[str, str | None]] = {
    "apply": {"settings": "new\n", "deep/er/drop-in": "fresh\n"},
    "remove": {"settings": None, "drop-in": "as before\n"},
}
BEFORE = {
    "apply": {"settings": "old\n", "foreign": "not ours\n"},
    "remove": {"settings": "old\n", "drop-in": "ours\n", "foreign": "not ours\n"},
}


@pytest.fixture(params=KINDS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> LocalNode:
    return local_node(request.param, tmp_path)


def local_node(kind: str, folder: Path) -> LocalNode:
    needs_shell("dash")
    root = folder / "node"
    restart = Restart("system", "Ollama", ("it must",))
    command = RunCommand("a command", f"echo done >{root}/commanded", scope="system")
    verbs: tuple[Action, ...] = ("enable", "displace")
    last: tuple[TransactionChange, ...] = (command, restart)
    if kind == "remove":
        verbs, last = ("disable", "halt", "hand_back"), (restart, Forget("system"))
    then = (*(ServiceAction(verb, "system", "Ollama") for verb in verbs), *last)
    return LocalNode(root, WANTED[kind], then, BEFORE[kind], kind == "remove")


def undisturbed(node: LocalNode) -> dict[str, str]:
    node.reset()
    node.apply()
    return {**node.seen()}


def is_old_or_new(node: LocalNode) -> None:
    for name, text in node.files().items():
        assert text in (node.before.get(name), node.wanted[name]), name
    assert node.path("foreign").read_text() == "not ours\n"


def steps_of(node: LocalNode) -> list[str]:
    node.reset()
    return node.run(node.transaction()).steps


def test_every_step_of_the_script_is_among_those_that_are_killed(tmp_path: Path) -> None:
    """What is added to the script later must be reached by a scenario here."""
    reached = set[str]()
    for kind in KINDS:
        node = local_node(kind, tmp_path)
        node.reset()
        reached |= {step.split()[0] for step in node.run(node.transaction(), verdict="no").steps}
        reached |= {step.split()[0] for step in steps_of(node)}
        node.reset()
        node.run(node.transaction(), partial(at_step, step=6, does=DIES))
        reached |= {step.split()[0] for step in node.run(node.recovery()).steps}
    named = set(re.findall(r"^\s*step ([a-z]\w*)", SCRIPT, re.MULTILINE))
    functions = re.findall(r"^(\w+)\(\) \{", SCRIPT, re.MULTILINE)
    performed = {name for name in functions if re.search(rf"""["' ]{name}\b[ "']""", CALLS)}
    assert {"commit", "undo", "recover"} <= named
    assert {"replace", "restart"} <= performed
    print(f"{len(named | performed)} kinds of step: {', '.join(sorted(named | performed))}")
    assert named | performed | set(get_args(Action)) <= reached


def test_commit_leaves_the_new_files_and_a_record_of_it(tmp_path: Path) -> None:
    node = local_node("apply", tmp_path)
    undisturbed(node)
    assert node.files() == node.wanted
    left = sorted(path.name for path in node.state.iterdir())
    assert left == ["backups", "log", "made", "origin"]
    assert node.state.joinpath("log").read_text().count("\n") == 1


def test_what_shall_be_forgotten_leaves_no_folder(tmp_path: Path) -> None:
    node = local_node("remove", tmp_path)
    undisturbed(node)
    assert node.files() == node.wanted
    assert not node.state.exists()


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_commits_goes_back_and_notices_silence(shell: str, tmp_path: Path) -> None:
    needs_shell(SHELLS[shell][0])
    node = replace(local_node("apply", tmp_path), shell=tuple(SHELLS[shell]))
    node.reset()
    before = node.files()
    for verdict in ("rollback", "no more", "silence"):
        assert "undone" in node.run(node.transaction(), verdict=verdict), verdict
        assert node.files() == before
    node.apply()
    assert node.files() == node.wanted


def test_rollback_leaves_everything_as_it_was(node: LocalNode) -> None:
    node.reset()
    before = {name: text for name, text in node.seen().items() if name != "commanded"}
    heard = node.run(node.transaction(), verdict="rollback")
    assert "undone" in heard
    after = {name: text for name, text in node.seen().items() if name != "commanded"}
    assert after == before
    assert not node.path("deep").exists()


@pytest.mark.slow
def test_killed_at_every_step_and_again_at_every_step_of_the_next_run(tmp_path: Path) -> None:
    node, verdict = local_node("apply", tmp_path), "rollback"
    as_desired = undisturbed(node)
    node.reset()
    steps = node.run(node.transaction(), verdict=verdict).steps
    pairs = 0
    for first in range(1, len(steps) + 1):
        for second in endless_steps():
            node.reset()
            node.run(node.transaction(), partial(at_step, step=first, does=DIES), verdict)
            is_old_or_new(node)
            repeat = node.recovery() if (node.state / "journal").exists() else node.transaction()
            again = node.run(repeat, partial(at_step, step=second, does=DIES))
            is_old_or_new(node)
            node.apply()
            assert node.seen() == as_desired, (first, second)
            pairs += 1
            if "released" in again or (second > 3 and "recover" not in again.steps):
                break  # it came to its end; or it was a run like the first
    print(f"{len(steps)} steps, {pairs} pairs of kills")
    assert pairs > len(steps)


def endless_steps() -> Iterator[int]:
    step = 1
    while True:
        yield step
        step += 1


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize(("kind", "verdict"), [("apply", "rollback"), ("remove", "commit")])
def test_killed_before_every_program_that_it_starts(
    kind: str, verdict: str, share: int, tmp_path: Path
) -> None:
    node = local_node(kind, tmp_path)
    as_desired = undisturbed(node)
    counter = tmp_path / "ticks"
    kills = 0
    for at in range(1 + share, 1000, 2):
        node.reset()
        heard = node.run(node.transaction(), dying_at_command(counter, at), verdict)
        if int(counter.read_text()) < at:
            break
        is_old_or_new(node)
        node.apply()
        assert node.seen() == as_desired, (at, heard)
        kills += 1
    print(f"{kind}: {kills} kills")
    assert kills > 10


@pytest.mark.parametrize("theirs", ["link", "folder"])
def test_what_leads_through_a_place_of_somebody_else_is_not_written(
    tmp_path: Path, theirs: str
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give something to somebody else")
    node = replace(local_node("apply", tmp_path), wanted={"way/in/file": "new\n"})
    node.reset()
    real, way = node.path("real"), node.path("way")
    (real / "in").mkdir(parents=True)
    if theirs == "link":
        way.symlink_to(real)
    else:
        real.rename(way)
    os.chown(way, 4711, 4711, follow_symlinks=False)
    heard = node.run(node.transaction())
    assert f"failed - {way} belongs to user 4711" in heard.records
    assert "untouched" in heard
    assert not node.path("way/in/file").exists()


def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give something to somebody else")
    node = local_node("apply", tmp_path)
    node.reset()
    os.chown(node.path("settings"), 4711, 4712)
    node.apply()
    seen = node.path("settings").stat()
    assert (seen.st_uid, seen.st_gid, node.files()) == (4711, 4712, node.wanted)


def test_a_command_that_dies_is_not_one_that_took_too_long(tmp_path: Path) -> None:
    node = local_node("apply", tmp_path)
    node = replace(node, then=(RunCommand("dies", "echo words; kill -SEGV $$", "system"),))
    node.reset()
    records = node.run(node.transaction()).records
    assert "failed 2 run failed" in records
    assert "| words" in records


def test_of_a_panic_its_reason_is_shown_and_not_where_it_was(tmp_path: Path) -> None:
    trace = (
        "panic: bad origin: origins must contain '*' or include http://\n\n"
        "goroutine 1 [running]:\n"
        "github.com/gin-contrib/cors.(*Config).Validate(...)\n"
        "\tgithub.com/gin-contrib/cors@v1.7.2/cors.go:120 +0x1a\n"
        "created by main.main in goroutine 1\n"
        "[GIN-debug] POST   /v1/messages --> handler\n"
        "systemd: Main process exited, code=exited, status=2\n"
    )
    (tmp_path / "log").write_text(trace)
    node = local_node("apply", tmp_path)
    node.reset()
    planned = node.transaction()
    log = replace(planned.supervisor, log=f"cat {tmp_path}/log")
    heard = node.run(replace(planned, supervisor=log), verdict="rollback")
    said = [line.removeprefix("| ") for line in heard.records if line.startswith("| ")]
    assert [line for line in said if line] == [trace.splitlines()[0], trace.splitlines()[-1]]
