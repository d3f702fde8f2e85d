"""Planning: cases as files, and what must hold for any facts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.errors import Exit
from fleetctl.inventory import load
from fleetctl.model.facts import Facts, Host, Unknown
from fleetctl.model.fleet import Fleet
from fleetctl.model.plan import Finding, Forget, Level, Plan, Restart
from fleetctl.model.report import Report
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from fleetctl.ui import documents
from fleetctl.ui import plan as shown
from tests.conftest import CASES
from tests.facts import PROJECT, after, facts_of, target_of

PLAYBOOK = read_playbook("apply", PROJECT)
TEMPLATES = Templates(PROJECT)
HOST = Host("Linux", "6.1", "x86_64", "Debian", "box", "ada", 1000, "/home/ada")
FACTS_OF_ANY = Facts(HOST, (), Unknown("it was not asked"))


def fleet_of(node: dict[str, Any], models: dict[str, Any], folder: Path) -> Fleet:
    file = folder / "fleet.yaml"
    file.write_text(json.dumps({"nodes": {"box": node}, "models": models}))
    return load(file)[0]


def planned(fleet: Fleet, facts: Facts) -> Plan:
    return plan(fleet, target_of(fleet), facts, PLAYBOOK, TEMPLATES)


@pytest.mark.parametrize("file", sorted((CASES / "plan").glob("*.yaml")), ids=lambda f: f.stem)
def test_case(file: Path, tmp_path: Path) -> None:
    case = yaml.safe_load(file.read_text())
    said = case["given"]
    fleet = fleet_of(said.get("node", {}), said.get("models", {}), tmp_path)
    result = planned(fleet, facts_of(said.get("facts", {}), target_of(fleet)))
    lines = list(shown.lines(Report((result,), 0), diff=False))
    assert lines == [f"box: {line}" for line in case["expect"]]
    assert int(result.exit_code) == case.get("exit", 3 if case["expect"] else 0)


def test_a_node_with_the_same_change_in_both_scopes_is_named_once() -> None:
    both = (("remove", Forget("system")), ("remove", Forget("user")))
    one, other = (Plan(name, FACTS_OF_ANY, changes=both) for name in ("one", "other"))
    assert list(shown.lines(Report((one, other), 0), diff=False)) == [
        "one, other: remove fleetctl's own state from the node"
    ]


def test_what_could_not_be_seen_is_counted_on_all_nodes_together() -> None:
    seen = Plan("seen", FACTS_OF_ANY, findings=(Finding("X1", Level.WARNING, "doubtful"),))
    unseen = Plan("unseen", FACTS_OF_ANY, findings=(Finding("X2", Level.UNKNOWN, "a"),))
    blind = replace(unseen, findings=(*unseen.findings, Finding("X2", Level.UNKNOWN, "b")))
    for plans, count, says in (
        ((seen,), 0, "1 node: 1 ok (0.0 s)."),
        ((seen, unseen), 1, "2 nodes: 2 ok (0.0 s). 1 thing is not known."),
        ((unseen, blind), 3, "2 nodes: 2 ok (0.0 s). 3 things are not known."),
    ):
        report = Report(plans, 0)
        assert shown.summary(report) == says
        assert documents.of_report(report)["unknown"] == count
        assert report.exit_code == Exit.OK


@pytest.mark.parametrize(("os", "asked"), [("", "macos"), ("os: linux", "linux")])
def test_a_step_is_asked_about_where_it_says_unless_the_playbook_says_otherwise(
    os: str, asked: str, tmp_path: Path
) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/own.yaml").write_text(f"steps:\n  - power: {{}}\n    {os}\n")
    fleet = fleet_of({}, {}, tmp_path)
    (entry,) = read_playbook("own", tmp_path)
    assert [question.os for question in entry.questions(target_of(fleet))] == [asked]


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "keep_alive": st.sampled_from(["5m", "24h", "-1", 300, None]),
    "num_parallel": st.integers(1, 4),
    "kv_cache_type": st.sampled_from(["q8_0", "f16"]),
    "no_cloud": st.booleans(),
    "debug": st.booleans(),
    "origins": st.lists(st.sampled_from(["https://a", "app://b"]), min_size=1),
    "models_dir": st.just("/srv/models"),
}
NAMES = st.sampled_from(["OLLAMA_KEEP_ALIVE", "OLLAMA_NUM_PARALLEL", "OLLAMA_DEBUG", "OTHER"])
WORDS = st.sampled_from(["1", "5m", "24h0m0s", "-1", "0", "x y"])
ENVIRONMENTS = st.dictionaries(NAMES, WORDS, max_size=3)
SERVICES = st.fixed_dictionaries(
    {},
    optional={
        "given": ENVIRONMENTS,
        "active": st.booleans(),
        "enabled": st.booleans(),
        "reload_pending": st.booleans(),
        "mode": st.sampled_from(["system", "user"]),
        "sources": st.lists(
            st.fixed_dictionaries({"path": st.just("/etc/foreign.conf"), "values": ENVIRONMENTS}),
            max_size=2,
        ),
        "files": st.dictionaries(
            st.sampled_from(["/etc/fleetctl/ollama.env", "/home/ada/.config/fleetctl/ollama.env"]),
            st.sampled_from(["", 'OLLAMA_KEEP_ALIVE="1m"\n', "garbage"]),
        ),
    },
)
FACTS = st.fixed_dictionaries(
    {"services": SERVICES.map(lambda service: [service])},
    optional={"models": st.lists(st.sampled_from(["qwen3:latest", "other:1b"]))},
)
MODELS = st.sampled_from(
    [{}, {"m": {"node": "box", "ollama_model": "qwen3", "context": 8192, "max_parallel": 2}}]
)


@settings(max_examples=300)
@given(
    ollama=st.fixed_dictionaries({}, optional=VALUES),
    prune=st.booleans(),
    models=MODELS,
    said=FACTS,
)
def test_planning_again_after_the_plan_finds_nothing(
    ollama: dict[str, Any],
    prune: bool,
    models: dict[str, Any],
    said: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fleet = fleet_of({"ollama": ollama, "prune": prune}, models, tmp_path_factory.getbasetemp())
    before = facts_of(said, target_of(fleet))
    first = planned(fleet, before)
    second = planned(fleet, after(first, before))
    assert second.changes == ()
    again = planned(fleet, before)
    assert again == first


@settings(max_examples=300)
@given(ollama=st.fixed_dictionaries({}, optional=VALUES), said=FACTS)
def test_a_plan_restarts_only_when_it_must(
    ollama: dict[str, Any], said: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A server that runs with all that is wanted is left alone, whatever the files say."""
    fleet = fleet_of({"ollama": ollama}, {}, tmp_path_factory.getbasetemp())
    wanted = dict(fleet.nodes["box"].environment)
    service = {**said["services"][0], "given": wanted, "active": True}
    service.pop("files", None)
    service["sources"] = [s for s in service.get("sources", []) if not s.get("ours")]
    result = planned(fleet, facts_of({**said, "services": [service]}, target_of(fleet)))
    assert not [change for _, change in result.changes if isinstance(change, Restart)]
