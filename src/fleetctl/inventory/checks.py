"""What a valid file can still get wrong: conflicts between nodes, and what is merely doubtful."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import BaseModel

from fleetctl.inventory import roles, ssh_config
from fleetctl.inventory.problems import Path, Problem
from fleetctl.inventory.schema import InventorySection
from fleetctl.model import address, model_name
from fleetctl.model.fleet import OLLAMA, Fleet, Model, Node


def conflicts(fleet: Fleet) -> Iterator[Problem]:
    targets: dict[object, str] = {}
    for node in fleet.nodes.values():
        where = ("nodes", node.name)
        if node.ssh is None:
            if node.endpoint is None and node.provider == OLLAMA:
                yield Problem(where, "has `ssh: none` and no 'endpoint'", "say how to reach it")
            continue
        other = targets.setdefault(node.ssh.target, node.name)
        if other != node.name:
            what = f"is the same machine as {other!r} ({node.ssh.host})"
            yield Problem(where, what, "one machine is one node; give it both sets of models")
    for model in fleet.models.values():
        if model_name.is_cloud(model.ollama_model) and _runs_without_cloud(model, fleet):
            what = f"{model.ollama_model!r} would send every prompt to Ollama's vendor"
            right = "choose a model that runs here, or set ollama.no_cloud: false on its node"
            yield Problem(("models", model.name, "ollama_model"), what, right)


def _runs_without_cloud(model: Model, fleet: Fleet) -> bool:
    environments = [fleet.nodes[node].environment for node in model.nodes]
    return any(environment.get("OLLAMA_NO_CLOUD") == "1" for environment in environments)


def doubts(inventory: InventorySection, fleet: Fleet) -> Iterator[Problem]:
    yield from _without_effect((), inventory)
    aliases = ssh_config.aliases()
    for name, node in fleet.nodes.items():
        yield from _of_node(node, inventory.nodes[name].endpoint is not None, aliases)
    yield from _of_models(fleet)
    yield from _of_contexts(fleet)
    for agent in fleet.agents.values():
        for at, tool in enumerate(agent.tools or ()):
            if not roles.is_known_tool(tool):
                what = f"{tool!r} is not a tool of Claude Code, which will drop it"
                yield Problem(("agents", agent.name, "tools", at), what)
    if not address.is_loopback(fleet.gateway.host):
        what = f"the gateway will listen on {fleet.gateway.host}, not only on this machine"
        where = ("gateway",) if inventory.gateway else ("project", "gateway")
        yield Problem((*where, "host"), what, "127.0.0.1 unless other machines must use it")


def _without_effect(where: Path, section: BaseModel) -> Iterator[Problem]:
    for key in section.model_fields_set:
        if type(section).model_fields[key].json_schema_extra is not None:
            yield Problem((*where, key), "has no effect in fleetctl", "it can be deleted")
        value = getattr(section, key)
        entries = value if isinstance(value, dict) else {None: value}
        for step, entry in entries.items():
            if isinstance(entry, BaseModel):
                deeper = (*where, key) if step is None else (*where, key, step)
                yield from _without_effect(deeper, entry)


def _of_node(node: Node, has_endpoint: bool, aliases: frozenset[str]) -> Iterator[Problem]:
    where = ("nodes", node.name)
    if node.ssh is None:
        if any(key.startswith("ollama.") and at == "node" for key, at in node.origins.items()):
            yield Problem((*where, "ollama"), "has no effect: fleetctl does not set this node up")
        return
    if not has_endpoint and (node.ssh.jump or node.ssh.host in aliases):
        how = "a jump host" if node.ssh.jump else "an alias of ~/.ssh/config"
        what = f"is reached by {how}, so the gateway will probably not reach {node.endpoint}"
        yield Problem(where, what, "give its 'endpoint'")
    listens = node.environment.get("OLLAMA_HOST")
    if listens and node.endpoint:
        yield from _of_way_in(where, listens, node.endpoint, node.ssh.is_local)


def _of_way_in(where: Path, listens: str, endpoint: str, is_local: bool) -> Iterator[Problem]:
    """Whether clients find the server where they look for it.

    Behind https is always a proxy, and a loopback that leads to another machine is a tunnel.
    """
    host, port = address.split_host_port(listens)
    here = address.is_loopback(address.host_of(endpoint))
    if here and not is_local:
        return
    if address.is_loopback(host) and not here:
        what = f"listens on {host} only, so nobody can reach {endpoint}"
        yield Problem(where, what, "unless a tunnel or proxy stands there, set ollama.host")
    elif endpoint.startswith("http:") and port != (asked := urlsplit(endpoint).port or 80):
        what = f"listens on port {port}, but {endpoint} means port {asked}"
        yield Problem(where, what, "unless a tunnel or proxy stands there, give both the same port")


def _of_models(fleet: Fleet) -> Iterator[Problem]:
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


def _of_contexts(fleet: Fleet) -> Iterator[Problem]:
    """Ollama has one context for all models of a node."""
    for model in fleet.models.values():
        for node in (fleet.nodes[name] for name in model.nodes):
            length = node.environment.get("OLLAMA_CONTEXT_LENGTH", "0")
            if node.ssh and model.context and length != str(model.context):
                shown = "what Ollama chooses" if length == "0" else length
                origin = node.origins["ollama.context_length"]
                what = f"will be {shown} on {node.name}, as for every model there ({origin})"
                right = "give the models of a node one context, and its ollama.context_length too"
                yield Problem(("models", model.name, "context"), what, right)
