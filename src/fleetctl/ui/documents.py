"""Reports, events and fleets as JSON: fleetctl's own documents, and Ansible's dynamic inventory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict

from fleetctl.errors import Exit, FleetError
from fleetctl.model.events import Ended, Event, Gathered, Planned
from fleetctl.model.fleet import CONTROLLER, Fleet, Node, Ssh
from fleetctl.model.plan import Change, Failed, Finding, Result, WriteFile
from fleetctl.model.report import Outcome, Report
from fleetctl.ui.console import FORMAT
from fleetctl.ui.fleet import settings
from fleetctl.ui.plan import diff_lines


def of_report(report: Report) -> dict[str, object]:
    results = {result.target: _result(result) for result in report.results}
    return {
        "exit_code": int(report.exit_code),
        "seconds": round(report.seconds, 3),
        "unknown": report.unknown,
        "nodes": {name: result for name, result in results.items() if name != CONTROLLER},
        "controller": results.get(CONTROLLER),
        "outcomes": {outcome.target: _outcome(outcome) for outcome in report.outcomes.values()},
    }


def event_line(event: Event) -> str:
    """One line of `--json-events`."""
    return json.dumps({"format": FORMAT, "event": type(event).__name__.lower(), **_event(event)})


def of_fleet(fleet: Fleet, nodes: Iterable[Node]) -> dict[str, object]:
    """Every effective value of these nodes, with its origin."""
    return {
        "project": fleet.name,
        "file": str(fleet.file),
        "gateway": asdict(fleet.gateway),
        "nodes": {
            node.name: {
                key: {"value": value, "origin": origin} for key, value, origin in settings(node)
            }
            for node in nodes
        },
        "models": {name: asdict(model) for name, model in fleet.models.items()},
        "agents": {name: asdict(agent) for name, agent in fleet.agents.items()},
    }


def ansible_inventory(fleet: Fleet, nodes: Iterable[Node]) -> dict[str, object]:
    """Groups and tags become Ansible groups; nodes that fleetctl does not manage are left out.

    Raises FleetError if two of them would become the same group.
    """
    managed = [(node, node.ssh) for node in nodes if node.ssh]
    hosts: dict[str, list[str]] = {}
    meanings = {"all": "every host", "ungrouped": "hosts without a group"}
    for node, _ in managed:
        names = {f"group {group}": group for group in node.groups}
        names |= {f"tag {tag}": f"tag_{tag}" for tag in node.tags}
        for meaning, name in (names or {meanings["ungrouped"]: "ungrouped"}).items():
            group = re.sub(r"\W", "_", name, flags=re.ASCII)
            if meanings.setdefault(group, meaning) != meaning:
                raise FleetError(
                    f"{meaning} would become the Ansible group {group}, which is {meanings[group]}",
                    hint="rename it in the inventory",
                    exit_code=Exit.USAGE,
                )
            hosts.setdefault(group, []).append(node.name)
    return {
        "_meta": {"hostvars": {node.name: _host_vars(fleet, node, ssh) for node, ssh in managed}},
        "all": {"children": sorted({*hosts, "ungrouped"})},
        **{group: {"hosts": members} for group, members in sorted(hosts.items())},
    }


def _event(event: Event) -> dict[str, object]:
    match event:
        case Gathered(result):
            return {"target": result.target, **_result(result)}
        case Planned(report):
            return of_report(report)
        case Ended(outcome):
            return {"target": outcome.target, **_outcome(outcome)}
    return asdict(event)


def _result(result: Result) -> dict[str, object]:
    document: dict[str, object] = {"state": result.state, "exit_code": int(result.exit_code)}
    if isinstance(result, Failed):
        return document | {"message": result.message, "hint": result.hint}
    return document | {
        "changes": [_change(kind, change) for kind, change in result.changes],
        "findings": [_finding(finding) for finding in result.findings],
    }


def _outcome(outcome: Outcome) -> dict[str, object]:
    return {
        "state": outcome.state,
        "exit_code": int(outcome.exit_code),
        "done": list(outcome.done),
        "message": outcome.message,
        "hint": outcome.hint,
        "output": list(outcome.output),
    }


def _change(kind: str, change: Change) -> dict[str, object]:
    document: dict[str, object] = {"step": kind, "stage": change.stage, "title": change.title}
    if isinstance(change, WriteFile):
        details, diff = list(change.details), diff_lines(change)
        document |= {"path": change.path, "details": details, "diff": diff}
    return document


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "level": finding.level.name.lower(),
        "text": finding.text,
        "hint": finding.hint,
    }


def _host_vars(fleet: Fleet, node: Node, ssh: Ssh) -> dict[str, object]:
    mapped = [model for model in fleet.models.values() if node.name in model.nodes]
    values = {
        "ansible_host": ssh.host,
        "ansible_user": ssh.user,
        "ansible_port": ssh.port,
        "ansible_ssh_private_key_file": ssh.identity_file,
        "ansible_ssh_common_args": f"-J {ssh.jump}" if ssh.jump else None,
        "ansible_connection": "local" if ssh.is_local else None,
        "ollama_endpoint": node.endpoint,
        "ollama_environment": dict(node.environment),
        "ollama_models": sorted({model.ollama_model for model in mapped}),
    }
    return {name: value for name, value in values.items() if value is not None}
