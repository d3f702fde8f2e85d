"""`apply` on real nodes: once it does all that is needed, and twice it does nothing."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from tests.hosts.managed import QUICK, Manage, Managed
from tests.hosts.project import LabProject
from tests.lab.ollama_api import ask

pytestmark = [pytest.mark.host, pytest.mark.ollama]

SCOPES = ["user", "installer"]
TRACES = (
    "find /etc /var/lib/fleetctl /usr/local /home/ada -xdev ! -path '/home/ada/.cache*'"
    " ! -path '/home/ada/.ollama*' -printf '%p %i %T@ %C@ %s %m %u\\n' 2>/dev/null | sort"
)
LOGINS = "journalctl --quiet -u ssh -o cat | grep -c 'Accepted publickey for ada'"


def transactions(project: LabProject) -> list[str]:
    """What the last run said to a transaction, by its log."""
    *_, last = sorted((project.folder / ".fleetctl" / "logs").iterdir())
    return re.findall(r"fleetctl.execute.transact received (.*)", last.read_text())


@pytest.mark.parametrize("kinds", SCOPES)
def test_three_nodes_differ_then_are_changed_then_are_as_desired(
    kinds: str, manage: Manage, project: LabProject
) -> None:
    nodes = [manage(kinds, project) for _ in range(3)]
    project("check").exits(3)
    out = project("apply", *QUICK).exits(0).out
    assert "3 nodes: 3 changed" in out
    assert "step commit" in transactions(project)
    assert "3 nodes: 3 ok" in project("check").exits(0).out
    for managed in nodes:
        seen = managed.seen()
        assert seen.effective("OLLAMA_KEEP_ALIVE") == "2562047h47m16.854775807s"  # for ever
        assert len(seen.log) == 1
    before = [(managed.seen(), managed.seen().run, managed.run(TRACES)) for managed in nodes]
    logins = [int(managed.run(LOGINS)) for managed in nodes]
    assert "3 nodes: 3 ok" in project("apply", *QUICK).exits(0).out
    assert [(each.seen(), each.seen().run, each.run(TRACES)) for each in nodes] == before
    assert transactions(project) == []
    assert [int(managed.run(LOGINS)) for managed in nodes] == [count + 1 for count in logins]


def starts(managed: Managed) -> int:
    """How often Ollama has been started on a node."""
    said = managed.run("journalctl --quiet -o cat | grep -c 'msg=\"server config\"'")
    return int(said)


@pytest.mark.parametrize("kinds", SCOPES)
def test_one_value_edited_is_one_line_one_restart_and_in_effect(kinds: str, manage: Manage) -> None:
    managed = manage(kinds)
    managed.set(keep_alive="10m", kv_cache_type="q8_0")
    managed.apply().exits(0)
    count = starts(managed)
    managed.set(keep_alive="20m", kv_cache_type="q8_0")
    assert managed.project.changes(managed.node) == [
        "OLLAMA_KEEP_ALIVE 10m → 20m",
        "restart Ollama, because it runs with OLLAMA_KEEP_ALIVE 10m",
    ]
    managed.apply().exits(0)
    assert starts(managed) == count + 1
    seen = managed.seen()
    assert seen.effective("OLLAMA_KEEP_ALIVE") == "20m0s"
    assert "OLLAMA_KV_CACHE_TYPE=q8_0" in seen.environ
    managed.set(keep_alive="20m")
    managed.apply().exits(0)
    seen = managed.seen()
    assert starts(managed) == count + 2
    assert "KV_CACHE" not in "".join((*seen.files.values(), seen.environ))
    assert seen.effective("OLLAMA_KV_CACHE_TYPE") == ""


@pytest.mark.parametrize("kinds", SCOPES)
def test_only_a_model_is_missing_nothing_is_restarted(kinds: str, manage: Manage) -> None:
    managed = manage(kinds)
    managed.set(max_loaded_models=2, num_parallel=1)
    managed.apply().exits(0)
    before = managed.seen()
    managed.project.rest["models"] = {
        "coder": {"node": managed.node.name, "ollama_model": "qwen2.5-coder:7b"}
    }
    assert managed.project.changes(managed.node) == ["pull qwen2.5-coder:7b"]
    managed.apply().exits(0)
    assert managed.seen().run == before.run
    names = [model["name"] for model in ask(managed.node, "/api/tags")["models"]]
    assert names == ["qwen2.5-coder:7b"]
    managed.project("check").exits(0)


def test_with_serial_1_never_two_of_three_are_down_at_once(
    manage: Manage, project: LabProject
) -> None:
    nodes = [manage("installer", project) for _ in range(3)]
    project("apply", *QUICK).exits(0)
    for managed in nodes:
        managed.set(keep_alive="10m")
    over = threading.Event()

    def watch(managed: Managed) -> list[tuple[float, float]]:
        """When it did not answer, from the last answer before to the first after."""
        down, last = [], time.monotonic()
        gone = False
        while not over.is_set() or gone:
            answers, now = managed.answers(), time.monotonic()
            if answers and gone:
                down.append((last, now))
            gone = not answers
            last = now if answers else last
            time.sleep(0.01)
        return down

    with ThreadPoolExecutor() as pool:
        watchers = [pool.submit(watch, managed) for managed in nodes]
        try:
            project("apply", *QUICK, "--serial", "1").exits(0)
        finally:
            over.set()
        found = sorted(span for watcher in watchers for span in watcher.result())
    assert len(found) == 3, "each node was down once"
    for (_, end), (begin, _) in pairwise(found):
        assert end <= begin + 0.05
    print(f"down one after the other: {[f'{end - begin:.2f} s' for begin, end in found]}")
