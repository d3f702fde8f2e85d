"""Names that must lead somewhere, and those of models.

Works on the plain values of a file, so that a broken reference is reported together with
everything else that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from fleetctl.inventory.document import Value
from fleetctl.inventory.problems import Path, Problem, did_you_mean
from fleetctl.model import model_name
from fleetctl.model.fleet import OLLAMA

MAX_CYCLES = 10
Sections = dict[str, dict[str, Value]]


def problems(inventory: Value) -> Iterator[Problem]:
    root = inventory if isinstance(inventory, dict) else {}
    tables = {kind: _table(root.get(kind)) for kind in ("groups", "nodes", "models", "agents")}
    for kind, table in tables.items():
        yield from _colliding(kind, table)
    for name, node in tables["nodes"].items():
        yield from _unknown(("nodes", name, "groups"), node.get("groups"), "group", tables)
    for name, model in tables["models"].items():
        yield from _placement(("models", name), model)
        yield from _misspelt(("models", name), model, tables["nodes"])
        for key in ("node", "nodes"):
            yield from _unknown(("models", name, key), model.get(key), "node", tables)
        yield from _unknown(("models", name, "fallback"), model.get("fallback"), "model", tables)
    yield from _cycles(tables["models"])
    for name, agent in tables["agents"].items():
        yield from _unknown(("agents", name, "model"), agent.get("model"), "model", tables)
    project = root.get("project")
    if root.get("gateway") and isinstance(project, dict) and project.get("gateway"):
        where = ("project", "gateway")
        yield Problem(where, "stands at the top of the file too", "delete one of them")


def _table(value: Value) -> dict[str, dict[str, Value]]:
    entries = value if isinstance(value, dict) else {}
    return {name: body if isinstance(body, dict) else {} for name, body in entries.items()}


def _names(value: Value) -> list[tuple[Path, str]]:
    """The names in a field that holds one or several, each with the rest of its path."""
    if isinstance(value, list):
        return [((at,), str(name)) for at, name in enumerate(value) if isinstance(name, str | int)]
    return [((), str(value))] if isinstance(value, str | int) else []


def _unknown(
    where: Path, value: Value, kind: str, tables: dict[str, Sections]
) -> Iterator[Problem]:
    known = tables[f"{kind}s"]
    for step, name in _names(value):
        if name not in known:
            what = f"there is no {kind} {name!r}"
            yield Problem((*where, *step), what, did_you_mean(name, known))


def _placement(where: Path, model: dict[str, Value]) -> Iterator[Problem]:
    if model.get("node") and model.get("nodes"):
        yield Problem((*where, "nodes"), "stands beside `node`", "give one of the two")
    elif not model.get("node") and not model.get("nodes"):
        yield Problem(where, "has no 'node'", "say on which node the model runs")


def _misspelt(where: Path, model: dict[str, Value], nodes: Sections) -> Iterator[Problem]:
    """Names for other providers than Ollama follow rules of their own."""
    its = [nodes.get(name, {}) for key in ("node", "nodes") for _, name in _names(model.get(key))]
    providers = [node.get("cloud_provider") or node.get("provider") or OLLAMA for node in its]
    if OLLAMA in providers and (name := model.get("ollama_model")):
        try:
            model_name.normalise(str(name))
        except ValueError as error:
            yield Problem((*where, "ollama_model"), str(error))


def _colliding(kind: str, table: Sections) -> Iterator[Problem]:
    """File systems and host names do not tell `Mini` from `mini`."""
    seen: dict[str, str] = {}
    for name in table:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            what = f"differs from {other!r} only in upper and lower case"
            yield Problem((kind, name), what, "rename one of them")


def _cycles(models: Sections) -> Iterator[Problem]:
    fallbacks = {
        name: {to for _, to in _names(body.get("fallback"))} for name, body in models.items()
    }
    for _ in range(MAX_CYCLES):
        try:
            TopologicalSorter(fallbacks).prepare()
        except CycleError as error:
            circle = list(reversed(error.args[1]))
            what = f"leads back to {circle[0]!r} ({' → '.join(circle)})"
            yield Problem(("models", circle[0], "fallback"), what, "break the circle")
            fallbacks[circle[0]].remove(circle[1])
        else:
            return
