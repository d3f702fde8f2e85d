"""plan(desired, facts): what differs on a target. Pure: it cannot connect or write."""

from collections.abc import Collection, Iterable

from fleetctl import audit, services
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Fleet, Target
from fleetctl.model.plan import Change, Finding, Plan, Recover
from fleetctl.playbook import Entry
from fleetctl.render import Templates
from fleetctl.steps import StepContext
from fleetctl.steps.preflight import PreflightFacts


def plan(
    fleet: Fleet,
    target: Target,
    facts: Facts,
    playbook: Iterable[Entry],
    templates: Templates,
    only: Collection[str] = (),
    *,
    has_sudo_password: bool = False,
) -> Plan:
    """`only` names the kinds of step to consider; none means all."""
    node = target.node
    service = services.choose(node.service, facts) if node else None
    preflight: PreflightFacts | None = None
    changes: list[tuple[str, Change]] = [
        ("recover", Recover(scope)) for scope in sorted(facts.host.unfinished)
    ]
    findings: list[Finding] = []
    for entry in playbook:
        if (only and entry.kind not in only) or not entry.applies(fleet, target, facts):
            continue
        context = StepContext(entry.name, fleet, target, facts, service, templates)
        seen = entry.step.read(entry.own(facts.answers))
        if isinstance(seen, PreflightFacts):
            preflight = seen
        for each in entry.step.plan(context, seen):
            if isinstance(each, Finding):
                findings.append(each)
            else:
                changes.append((entry.kind, each))
    if node:
        audited = audit.Audited(node, facts, service, preflight, has_sudo_password)
        findings += audit.findings(audited)
    rival = services.rival(service, facts) if service else None
    return Plan(target.name, facts, service, rival, tuple(changes), tuple(dict.fromkeys(findings)))
