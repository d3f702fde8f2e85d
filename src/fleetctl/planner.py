"""plan(desired, facts): what differs on a node. Pure: it could not write if it wanted to."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fleetctl import backends
from fleetctl.audit import exposure
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Fleet, Node
from fleetctl.model.plan import Change, Finding, Level, NodePlan, Recover
from fleetctl.playbook import Entry
from fleetctl.render import Templates
from fleetctl.steps import Subject


def plan(
    fleet: Fleet,
    node: Node,
    facts: Facts,
    playbook: Iterable[Entry],
    templates: Templates,
    only: Collection[str] = (),
    *,
    elevates: bool = False,
) -> NodePlan:
    """`only` names the kinds of step to look at; none means all."""
    service = backends.service_of(node, facts)
    subject = Subject(fleet, node, facts, service, templates, elevates)
    changes: list[tuple[str, Change]] = [
        ("recover", Recover(scope == "system")) for scope in sorted(facts.unfinished)
    ]
    findings: list[Finding] = []
    for entry in playbook:
        if (only and entry.kind not in only) or not entry.applies(subject):
            continue
        for each in entry.step.plan(entry.name, subject):
            if isinstance(each, Finding):
                findings.append(each)
            else:
                changes.append((entry.kind, each))
    findings += exposure.findings(node, facts)
    if facts.at_work:
        findings.append(Finding(Level.NOTE, f"a run of {facts.at_work} is at work here right now"))
    return NodePlan(node.name, facts, service, tuple(changes), tuple(dict.fromkeys(findings)))
