"""Checks of an inventory beyond the types of its values.

`references` works on the plain values, so that a broken reference is reported together with every
error of form. `conflicts` and `warnings` need the resolved fleet, so they run on a valid file.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from urllib.parse import urlsplit

from pydantic import BaseModel

from fleetctl.inventory import ssh_config
from fleetctl.inventory.document import Value
from fleetctl.inventory.problems import KeyPath, Problem, did_you_mean
from fleetctl.inventory.schema import InventorySection
from fleetctl.model import address, model_name
from fleetctl.model.fleet import OLLAMA, Fleet, Model, Node

MAX_CYCLES = 10
Table = dict[str, dict[str, Value]]
"""The entries of `groups`, `nodes`, `models` or `agents`, by name."""

_TOOLS = {
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep",
    "KillShell", "NotebookEdit", "Read", "Skill", "SlashCommand", "Task", "WebFetch", "WebSearch",
    "Write",
}  # fmt: skip
"""The tools of Claude Code. It drops any other name without a message."""


# --- references, on plain values ---


def references(inventory: Value) -> Iterator[Problem]:
    """Names that refer to nothing, fallback cycles, colliding names, invalid names of models."""
    root = inventory if isinstance(inventory, dict) else {}
    tables = {kind: _table(root.get(kind)) for kind in ("groups", "nodes", "models", "agents")}
    for kind, table in tables.items():
        yield from _colliding_names(kind, table)
    for name, node in tables["nodes"].items():
        yield from _unknown(("nodes", name, "groups"), node.get("groups"), "group", tables)
    for name, model in tables["models"].items():
        yield from _placement(("models", name), model)
        yield from _invalid_model_name(("models", name), model, tables["nodes"])
        for key in ("node", "nodes"):
            yield from _unknown(("models", name, key), model.get(key), "node", tables)
        yield from _unknown(("models", name, "fallback"), model.get("fallback"), "model", tables)
    yield from _fallback_cycles(tables["models"])
    for name, agent in tables["agents"].items():
        yield from _unknown(("agents", name, "model"), agent.get("model"), "model", tables)
    project = root.get("project")
    if root.get("gateway") and isinstance(project, dict) and project.get("gateway"):
        where = ("project", "gateway")
        yield Problem(where, "is also set at the top level", "delete one of them")


def _table(value: Value) -> Table:
    entries = value if isinstance(value, dict) else {}
    return {name: body if isinstance(body, dict) else {} for name, body in entries.items()}


def _names(value: Value) -> list[tuple[KeyPath, str]]:
    """The names in a field that holds one or several, each with the rest of its path."""
    if isinstance(value, list):
        return [((at,), str(name)) for at, name in enumerate(value) if isinstance(name, str | int)]
    return [((), str(value))] if isinstance(value, str | int) else []


def _unknown(
    where: KeyPath, value: Value, kind: str, tables: dict[str, Table]
) -> Iterator[Problem]:
    known = tables[f"{kind}s"]
    for step, name in _names(value):
        if name not in known:
            what = f"there is no {kind} {name!r}"
            yield Problem((*where, *step), what, did_you_mean(name, known))


def _placement(where: KeyPath, model: dict[str, Value]) -> Iterator[Problem]:
    if model.get("node") and model.get("nodes"):
        yield Problem((*where, "nodes"), "is set together with `node`", "set only one of them")
    elif not model.get("node") and not model.get("nodes"):
        yield Problem(where, "has no 'node'", "name the node that runs the model")


def _invalid_model_name(where: KeyPath, model: dict[str, Value], nodes: Table) -> Iterator[Problem]:
    """Only on nodes with Ollama; other providers have other rules for names."""
    names = [name for key in ("node", "nodes") for _, name in _names(model.get(key))]
    used = [nodes.get(name, {}) for name in names]
    providers = [node.get("cloud_provider") or node.get("provider") or OLLAMA for node in used]
    if OLLAMA in providers and (name := model.get("ollama_model")):
        try:
            model_name.normalise(str(name))
        except ValueError as error:
            yield Problem((*where, "ollama_model"), str(error))


def _colliding_names(kind: str, table: Table) -> Iterator[Problem]:
    """Host names and some file systems treat `Mini` and `mini` as the same."""
    seen: dict[str, str] = {}
    for name in table:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            what = f"differs from {other!r} only in upper and lower case"
            yield Problem((kind, name), what, "rename one of them")


def _fallback_cycles(models: Table) -> Iterator[Problem]:
    fallbacks = {
        name: {to for _, to in _names(body.get("fallback"))} for name, body in models.items()
    }
    for _ in range(MAX_CYCLES):
        try:
            TopologicalSorter(fallbacks).prepare()
        except CycleError as error:
            cycle = list(reversed(error.args[1]))
            what = f"the fallbacks form a cycle: {' → '.join(cycle)}"
            yield Problem(("models", cycle[0], "fallback"), what, "remove one of them")
            fallbacks[cycle[0]].remove(cycle[1])
        else:
            return


# --- conflicts and warnings, on the resolved fleet ---


def conflicts(fleet: Fleet) -> Iterator[Problem]:
    """Settings that are valid one by one and cannot work together."""
    machines: dict[object, str] = {}
    for node in fleet.nodes.values():
        where = ("nodes", node.name)
        if node.ssh is None:
            if node.endpoint is None and node.provider == OLLAMA:
                hint = "give the 'endpoint' at which it is reached"
                yield Problem(where, "has `ssh: none` and no 'endpoint'", hint)
            continue
        other = machines.setdefault(node.ssh.target, node.name)
        if other != node.name:
            what = f"is the same machine as {other!r} ({node.ssh.host})"
            yield Problem(where, what, "keep one of the two nodes and map all models to it")
    for model in fleet.models.values():
        if model_name.is_cloud(model.ollama_model) and _runs_without_cloud(model, fleet):
            what = f"{model.ollama_model!r} runs in Ollama's cloud, which would get every prompt"
            hint = "choose a model that runs locally, or set ollama.no_cloud: false on its node"
            yield Problem(("models", model.name, "ollama_model"), what, hint)


def _runs_without_cloud(model: Model, fleet: Fleet) -> bool:
    environments = [fleet.nodes[node].environment for node in model.nodes]
    return any(environment.get("OLLAMA_NO_CLOUD") == "1" for environment in environments)


def warnings(inventory: InventorySection, fleet: Fleet) -> Iterator[Problem]:
    """Settings that work and are probably a mistake."""
    yield from _keys_without_effect((), inventory)
    aliases = ssh_config.aliases()
    for name, node in fleet.nodes.items():
        yield from _node_warnings(node, inventory.nodes[name].endpoint is not None, aliases)
    yield from _model_warnings(fleet)
    yield from _context_warnings(fleet)
    for agent in fleet.agents.values():
        for at, tool in enumerate(agent.tools or ()):
            if not _is_known_tool(tool):
                what = f"{tool!r} is not a tool of Claude Code, which will drop it"
                yield Problem(("agents", agent.name, "tools", at), what)
    if not address.is_loopback(fleet.gateway.host):
        what = f"the gateway will listen on {fleet.gateway.host}, not only on this machine"
        where = ("gateway",) if inventory.gateway else ("project", "gateway")
        hint = "use 127.0.0.1 unless other machines must reach the gateway"
        yield Problem((*where, "host"), what, hint)


def _is_known_tool(name: str) -> bool:
    """`Bash(git log:*)` restricts a tool; `mcp__server__tool` comes from an MCP server."""
    return name.partition("(")[0] in _TOOLS or name.startswith("mcp__")


def _keys_without_effect(where: KeyPath, section: BaseModel) -> Iterator[Problem]:
    for key in section.model_fields_set:
        if type(section).model_fields[key].json_schema_extra is not None:
            yield Problem((*where, key), "has no effect in fleetctl", "it can be deleted")
        value = getattr(section, key)
        entries = value if isinstance(value, dict) else {None: value}
        for name, entry in entries.items():
            if isinstance(entry, BaseModel):
                deeper = (*where, key) if name is None else (*where, key, name)
                yield from _keys_without_effect(deeper, entry)


def _node_warnings(node: Node, has_endpoint: bool, aliases: frozenset[str]) -> Iterator[Problem]:
    where = ("nodes", node.name)
    if node.ssh is None:
        if any(key.startswith("ollama.") and at == "node" for key, at in node.origins.items()):
            what = "has no effect: fleetctl does not manage this node"
            yield Problem((*where, "ollama"), what)
        return
    if not has_endpoint and (node.ssh.jump or node.ssh.host in aliases):
        how = "a jump host" if node.ssh.jump else "an alias of ~/.ssh/config"
        what = f"is reached by {how}, so the gateway will probably not reach {node.endpoint}"
        yield Problem(where, what, "give its 'endpoint'")
    listen_address = node.environment.get("OLLAMA_HOST")
    if listen_address and node.endpoint:
        yield from _endpoint_warnings(where, listen_address, node.endpoint, node.ssh.is_local)


def _endpoint_warnings(
    where: KeyPath, listen_address: str, endpoint: str, is_local: bool
) -> Iterator[Problem]:
    """Whether the server listens where its endpoint points.

    An https endpoint belongs to a proxy, and a loopback endpoint of a remote node to a tunnel.
    """
    host, port = address.split_host_port(listen_address)
    is_loopback = address.is_loopback(address.host_of(endpoint))
    if is_loopback and not is_local:
        return
    if address.is_loopback(host) and not is_loopback:
        what = f"listens on {host} only, so clients cannot reach {endpoint}"
        yield Problem(where, what, "set ollama.host, unless a tunnel or proxy listens there")
    elif endpoint.startswith("http:") and port != (expected := urlsplit(endpoint).port or 80):
        what = f"listens on port {port}, but {endpoint} means port {expected}"
        yield Problem(where, what, "use one port for both, unless a tunnel or proxy listens there")


def _model_warnings(fleet: Fleet) -> Iterator[Problem]:
    by_alias: dict[str, Model] = {}
    for model in fleet.models.values():
        where = ("models", model.name)
        other = by_alias.setdefault(model.litellm_alias, model)
        if (other.ollama_model, other.context) != (model.ollama_model, model.context):
            what = f"shares the alias {model.litellm_alias!r} with {other.name!r}, but runs another"
            yield Problem(where, f"{what} model or context", "requests will go to either")
        for name in model.fallback:
            context = fleet.models[name].context
            if model.context and (context or 0) < model.context:
                what = f"the fallback {name!r} has a smaller context, or none given"
                yield Problem((*where, "fallback"), what, "long requests would fail there")


def _context_warnings(fleet: Fleet) -> Iterator[Problem]:
    """Ollama has one context for all models of a node."""
    for model in fleet.models.values():
        for node in (fleet.nodes[name] for name in model.nodes):
            length = node.environment.get("OLLAMA_CONTEXT_LENGTH", "0")
            if node.ssh and model.context and length != str(model.context):
                shown = "Ollama's default" if length == "0" else length
                origin = node.origins["ollama.context_length"]
                what = f"will be {shown} on {node.name}, as for every model there ({origin})"
                hint = "give the models of a node one context, and its ollama.context_length too"
                yield Problem(("models", model.name, "context"), what, hint)
