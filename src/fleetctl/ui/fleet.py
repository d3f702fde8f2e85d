"""A fleet for people: what each node will be and why, and who works where."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from fleetctl.model import variables
from fleetctl.model.fleet import Fleet, Model, Node
from fleetctl.ui.console import columns, printable, styled

Value = str | int | None


def document(fleet: Fleet, nodes: Iterable[Node]) -> dict[str, object]:
    """The same for programs."""
    return {
        "project": fleet.name,
        "file": str(fleet.file),
        "gateway": asdict(fleet.gateway),
        "nodes": {
            node.name: {
                key: {"value": value, "origin": origin} for key, value, origin in _settings(node)
            }
            for node in nodes
        },
        "models": {name: asdict(model) for name, model in fleet.models.items()},
        "agents": {name: asdict(agent) for name, agent in fleet.agents.items()},
    }


def values(fleet: Fleet, nodes: Iterable[Node]) -> Iterator[str]:
    """Every effective value, with where it came from."""
    for node in nodes:
        yield styled(node.name, "strong", sys.stdout)
        given = (setting for setting in _settings(node) if setting[1] is not None)
        yield from columns(((key, _text(value), origin) for key, value, origin in given), indent=2)
        yield ""
    yield from routing(fleet)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def routing(fleet: Fleet) -> Iterator[str]:
    """`planner → qwen2.5-coder:7b on mini-16`."""
    rows = []
    for agent in fleet.agents.values():
        model = fleet.models[agent.model]
        rows.append((agent.name, "→", f"{model.ollama_model} on {', '.join(model.nodes)}"))
    yield from columns(rows)


def graph(fleet: Fleet, nodes: Iterable[Node]) -> Iterator[str]:
    """Groups, their nodes, the models there, and the agents behind those."""
    chosen = list(nodes)
    by_node: dict[str, list[Model]] = {}
    for model in fleet.models.values():
        for name in model.nodes:
            by_node.setdefault(name, []).append(model)
    groups = [(f"@{group}", [n for n in chosen if group in n.groups]) for group in fleet.groups]
    ungrouped = ("(no group)", [node for node in chosen if not node.groups])
    yield fleet.name
    branches = [branch for branch in (*groups, ungrouped) if branch[1]]
    for at, (title, members) in enumerate(branches):
        yield from _branch(at == len(branches) - 1, title, _members(fleet, members, by_node))


def _members(fleet: Fleet, nodes: list[Node], by_node: dict[str, list[Model]]) -> list[str]:
    lines: list[str] = []
    for at, node in enumerate(nodes):
        models = by_node.get(node.name, [])
        inner = [
            line for each in models for line in _branch(each is models[-1], _used(fleet, each))
        ]
        lines += _branch(at == len(nodes) - 1, f"{node.name}  {node.endpoint or ''}", inner)
    return lines


def _used(fleet: Fleet, model: Model) -> str:
    agents = [agent.name for agent in fleet.agents.values() if agent.model == model.name]
    return f"{model.name} = {model.ollama_model}" + (f"  ← {', '.join(agents)}" if agents else "")


def _branch(last: bool, title: str, inner: Iterable[str] = ()) -> Iterator[str]:
    yield ("└─ " if last else "├─ ") + printable(title).rstrip()
    for line in inner:
        yield ("   " if last else "│  ") + line


def _settings(node: Node) -> Iterator[tuple[str, Value, str]]:
    """What a node will be: key, value, and where that came from."""
    for key, value in _values(node):
        yield key, value, node.origins.get(key, "node")


def _values(node: Node) -> Iterator[tuple[str, Value]]:
    """By the keys that say so in the inventory."""
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
