"""Settings on which Ollama does not do well, on real nodes: back to what was, 40 times of 40."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import Outcome
from tests.hosts.managed import Manage, Managed
from tests.hosts.project import LabProject

pytestmark = [pytest.mark.host, pytest.mark.ollama]

SCOPES = ["user", "installer"]
RIVAL_PORT = 11500
# Ollama as it is, unless a variable says otherwise.
WRAPPER = """\
#!/bin/sh
case ${GPU_DEVICE_ORDINAL-} in
  (never-answers) exec rival 11434 silent;;
  (crashes)
    "$0.real" "$@" &
    sleep 1.5
    echo "the lab lets it crash"
    sleep 0.3  # the journal asks whose words these are, and only the living can be asked
    kill -9 $!
    exit 1;;
  (deaf) OLLAMA_KEEP_ALIVE=1h "$0.real" "$@"; exit;;
esac
exec "$0.real" "$@"
"""
# Listens on a port and ends each connection, or says nothing at all.
RIVAL = """\
#!/usr/bin/perl
use IO::Socket::INET;
$s = IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => $ARGV[0], Listen => 5) or die;
sleep 1000 if $ARGV[1];
while ($c = $s->accept) { close $c }
"""

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "cannot start": ({"host": f"0.0.0.0:{RIVAL_PORT}"}, "address already in use"),
    "never answers": ({"env": {"GPU_DEVICE_ORDINAL": "never-answers"}}, "Ollama was not up after"),
    "answers and crashes": ({"env": {"GPU_DEVICE_ORDINAL": "crashes"}}, "the lab lets it crash"),
    "ignores the value": (
        {"env": {"GPU_DEVICE_ORDINAL": "deaf"}},
        "Ollama was given OLLAMA_KEEP_ALIVE=20m0s and uses 1h0m0s",
    ),
}
ROUNDS = 10
IMPATIENT = ("--yes", "--health-timeout", "4", "--settle", "2.5")


def fragile(manage: Manage, kinds: str, project: LabProject | None = None) -> Managed:
    """A node that does well, until it is told otherwise."""
    managed = manage(kinds, project)
    binary = managed.place["binary"]
    managed.run(f"mv {binary} {binary}.real")
    managed.node.write(binary, WRAPPER)
    managed.node.write("/usr/local/bin/rival", RIVAL)
    managed.run(
        f"chmod 755 {binary} /usr/local/bin/rival; systemd-run -q -u rival rival {RIVAL_PORT}"
    )
    managed.set(keep_alive="10m")
    managed.apply().exits(0)
    return managed


def roll_back(managed: Managed, kind: str) -> Outcome:
    """Tries bad settings, and asserts that all is as before."""
    settings, says = BAD[kind]
    before = managed.seen()
    managed.set(keep_alive="20m", **settings)
    outcome = managed.project("apply", *IMPATIENT).exits(5)
    assert f"{managed.node.name}: rolled back: " in outcome.out
    assert says in outcome.out
    assert "  | " in outcome.out
    after = managed.seen()
    assert after == before
    assert after.effective("OLLAMA_KEEP_ALIVE") == "10m0s"
    assert after.run != before.run
    assert after.log[-1].split("\t")[3] == "rolled back"
    assert managed.answers()
    managed.set(keep_alive="10m")
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("kinds", SCOPES)
def test_forty_runs_on_bad_settings_forty_restored(kinds: str, manage: Manage) -> None:
    """Twenty in each scope, five of each kind, on two nodes at a time."""
    nodes = [fragile(manage, kinds) for _ in range(2)]
    todo = [kind for kind in BAD for _ in range(ROUNDS // len(SCOPES))]
    runs = len(todo)

    def work(managed: Managed) -> Counter[str]:
        restored = Counter[str]()
        while todo:
            kind = todo.pop()
            roll_back(managed, kind)
            restored[kind] += 1
        managed.project("check").exits(0)
        return restored

    with ThreadPoolExecutor() as pool:
        restored = sum(pool.map(work, nodes), Counter[str]())
    print(f"{kinds}: {runs} runs, {restored.total()} restored: {dict(restored)}")
    assert restored.total() == runs == 20


@pytest.mark.parametrize(
    "kind",
    ["cannot start", "never answers", "answers and crashes", "ignores the value"],
    ids=["fault_39", "fault_40", "fault_41", "fault_44"],
)
def test_fault_39_40_41_and_44_settings_that_do_no_good_are_taken_back(
    kind: str, manage: Manage
) -> None:
    roll_back(fragile(manage, "user"), kind)


def test_fault_42_who_has_the_port_is_named(manage: Manage) -> None:
    managed = fragile(manage, "installer")
    outcome = roll_back(managed, "cannot start")
    assert re.search(r'users:\(\("rival",pid=\d+', outcome.out)


def test_a_node_that_fails_harms_no_other(manage: Manage, project: LabProject) -> None:
    good = manage("installer", project)
    bad = fragile(manage, "installer", project)
    good.set(keep_alive="20m")
    bad.set(keep_alive="20m", env={"GPU_DEVICE_ORDINAL": "never-answers"})
    outcome = project("apply", *IMPATIENT).exits(5)
    assert f"{bad.node.name}: rolled back" in outcome.out
    assert "1 changed" in outcome.out
    assert good.seen().effective("OLLAMA_KEEP_ALIVE") == "20m0s"
    assert bad.seen().effective("OLLAMA_KEEP_ALIVE") == "10m0s"


@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_46_where_the_way_back_fails_a_person_is_told_what_to_do(
    kinds: str, manage: Manage
) -> None:
    """The old file cannot be put back, as nobody can write there any more."""
    managed = fragile(manage, kinds)
    before = managed.seen()
    folder = managed.place["settings"].rpartition("/")[0]
    managed.run("mkdir /run/held")
    # the bad Ollama itself takes the folder away, as a disk would that fails right now
    managed.node.write(
        managed.place["binary"],
        WRAPPER.replace(
            "(never-answers)", f"(never-answers) sudo mount --bind -o ro {folder} {folder};"
        ),
    )
    managed.run("echo 'ollama ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ollama")
    managed.set(keep_alive="20m", env={"GPU_DEVICE_ORDINAL": "never-answers"})
    outcome = managed.project("apply", *IMPATIENT).exits(6)
    assert f"{managed.node.name}: dirty: " in outcome.out
    assert "the rollback failed too" in outcome.out
    journal = f"{managed.place['state']}/journal"
    assert managed.run(f"ls {journal}")
    commands = re.findall(r"^  \| \$ (.*)$", outcome.out, re.MULTILINE)
    assert commands
    managed.run(f"umount {folder} || umount -l {folder}")
    user = "" if kinds == "installer" else "runuser -u ada -- env XDG_RUNTIME_DIR=/run/user/1000 "
    for command in commands:
        quoted = command.replace("'", "'\\''")
        managed.run(f"{user}sh -c '{quoted}'")
    managed.serves()
    managed.set(keep_alive="10m")
    managed.project("check").exits(0)
    after = managed.seen()
    assert after.files == before.files
    assert after.effective("OLLAMA_KEEP_ALIVE") == "10m0s"
