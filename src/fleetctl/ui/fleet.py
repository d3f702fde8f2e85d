"""An inventory and a machine as lines: effective values, routing, tree, description."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from fleetctl.model import variables
from fleetctl.model.facts import Facts, Unknown
from fleetctl.model.fleet import Fleet, Model, Node
from fleetctl.ui.console import Branch, printable, styled, table, tree

Value = str | int | None

_SYSTEMS = {"Darwin": "macOS"}


def values(fleet: Fleet, nodes: Iterable[Node]) -> Iterator[str]:
    """Every effective value with its origin, then which agent uses which model."""
    for node in nodes:
        yield styled(printable(node.name), "strong", sys.stdout)
        given = (setting for setting in settings(node) if setting[1] is not None)
        yield from table(((key, _text(value), origin) for key, value, origin in given), indent=2)
        yield ""
    yield from routing(fleet)


def routing(fleet: Fleet) -> list[str]:
    """`planner  →  qwen2.5-coder:7b on mini-16`, one line an agent."""
    rows = []
    for agent in fleet.agents.values():
        model = fleet.models[agent.model]
        rows.append((agent.name, "→", f"{model.ollama_model} on {', '.join(model.nodes)}"))
    return table(rows)


def graph(fleet: Fleet, nodes: Iterable[Node]) -> list[str]:
    """Groups, their nodes, the models mapped there, and the agents that use those."""
    selected = list(nodes)
    groups = [(f"@{group}", [n for n in selected if group in n.groups]) for group in fleet.groups]
    ungrouped = ("(no group)", [node for node in selected if not node.groups])
    branches = [
        Branch(title, [_node_branch(fleet, node) for node in members])
        for title, members in (*groups, ungrouped)
        if members
    ]
    return tree(Branch(fleet.name, branches))


def settings(node: Node) -> Iterator[tuple[str, Value, str]]:
    """Inventory key, effective value and origin of everything that a node is given."""
    for key, value in _effective(node):
        yield key, value, node.origins.get(key, "node")


def describe_machine(facts: Facts) -> str:
    """A machine in one line, as `provision --add` shows it."""
    host = facts.host
    system = host.distribution or _SYSTEMS.get(host.system, host.system)
    return printable(f"{system}, {host.machine}, {_ollama(facts)}")


def _ollama(facts: Facts) -> str:
    api = facts.api
    if isinstance(api, Unknown):
        installed = facts.host.programs or any(service.loaded for service in facts.services)
        return "Ollama is installed but does not answer" if installed else "without Ollama"
    active = next((service for service in facts.services if service.active), None)
    how = f"as a {active.scope} service" if active else "not as a service"
    count = f"{len(api.models)} model{'' if len(api.models) == 1 else 's'}"
    return f"Ollama {api.version} {how}, {count}"


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _node_branch(fleet: Fleet, node: Node) -> Branch:
    mapped = [model for model in fleet.models.values() if node.name in model.nodes]
    title = f"{node.name}  {node.endpoint or ''}"
    return Branch(title, [Branch(_model_title(fleet, model)) for model in mapped])


def _model_title(fleet: Fleet, model: Model) -> str:
    agents = [agent.name for agent in fleet.agents.values() if agent.model == model.name]
    return f"{model.name} = {model.ollama_model}" + (f"  ← {', '.join(agents)}" if agents else "")


def _effective(node: Node) -> Iterator[tuple[str, Value]]:
    """By inventory key."""
    yield "endpoint", node.endpoint
    yield "provider", node.provider
    if node.ssh is None:
        yield "ssh", "none"
    else:
        for key, value in asdict(node.ssh).items():
            yield f"ssh.{key}", value
        yield "ollama.service", node.service
        yield "ollama.takeover", node.takeover
        for variable, value in node.environment.items():
            typed = variables.key_of(variable)
            is_switch = typed and variables.TYPED[typed][1] is variables.SWITCH
            yield f"ollama.{typed or f'env.{variable}'}", value == "1" if is_switch else value
        yield "exposure", "acknowledged" if node.exposure_acknowledged else None
        yield "prune", node.prune
        yield "power.sleep", node.sleep
    yield "groups", " ".join(node.groups) or None
    yield "tags", " ".join(node.tags) or None
