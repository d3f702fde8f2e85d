"""From the sections of a file to a Fleet: layers merged once, defaults derived.

Three layers: `defaults`, then the node's groups in their order, then the node itself. A value that
no layer sets is *built-in* (the same for every node) or *derived* (from the models mapped to the
node, or from its other values). The origin of each value is kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleetctl.inventory.schema import (
    AgentSection,
    GatewaySection,
    InventorySection,
    Layer,
    ModelSection,
    NodeSection,
    Section,
    SshSection,
)
from fleetctl.model import address, model_name, variables
from fleetctl.model.fleet import OLLAMA, Agent, Fleet, Gateway, Model, Node, Ssh

_BUILT_IN = {
    "ollama.service": "auto",
    "ollama.takeover": False,
    "ollama.keep_alive": "-1",
    "ollama.no_cloud": "1",
    "exposure": None,
    "prune": False,
    "power.sleep": None,
}

_PROMPTS = {
    "planner": (
        "You plan work on this code base. Read what is needed, then answer with a short numbered "
        "plan: which files change, in which order, and how each step is checked. Do not edit files."
    ),
    "implementer": (
        "You carry out one planned change. Read before you edit, keep to the style of the files "
        "around you, change nothing that was not asked for, run the tests, and report what you did."
    ),
    "reviewer": (
        "You review a change. Look for mistakes, missing tests and needless complexity. Answer "
        "with findings in order of weight, each with file and line. Say so when there are none."
    ),
    "summarizer": (
        "You summarise code, logs or discussions. Keep names, numbers and decisions exact, leave "
        "out what the reader can do without, and mark what is uncertain."
    ),
}
"""For agents without a prompt, by the usual names of roles."""


def resolve(inventory: InventorySection, file: Path) -> Fleet:
    """Expects an inventory without broken references."""
    models = {name: _model(name, section, inventory) for name, section in inventory.models.items()}
    mapped: dict[str, list[Model]] = {name: [] for name in inventory.nodes}
    for model in models.values():
        for node_name in model.nodes:
            mapped[node_name].append(model)
    gateway = inventory.gateway or inventory.project.gateway or GatewaySection()
    return Fleet(
        name=inventory.project.name,
        file=file,
        gateway=Gateway(**gateway.model_dump()),
        groups=tuple(inventory.groups),
        nodes={
            name: _node(name, node, _layers(node, inventory), mapped[name])
            for name, node in inventory.nodes.items()
        },
        models=models,
        agents={name: _agent(name, section) for name, section in inventory.agents.items()},
    )


def _provider(node: NodeSection) -> str:
    return node.cloud_provider or node.provider


def _is_for_ollama(model: ModelSection, inventory: InventorySection) -> bool:
    """Other providers than Ollama have other rules for names of models."""
    nodes = (inventory.nodes.get(name) for name in (model.node or "", *model.nodes))
    return any(node and _provider(node) == OLLAMA for node in nodes)


def _model(name: str, section: ModelSection, inventory: InventorySection) -> Model:
    ours = _is_for_ollama(section, inventory)
    return Model(
        name=name,
        nodes=tuple(dict.fromkeys(section.nodes or [section.node or ""])),
        ollama_model=model_name.normalise(section.ollama_model) if ours else section.ollama_model,
        litellm_alias=section.litellm_alias or f"fleet-{name}",
        context=section.context,
        timeout=section.timeout,
        max_parallel=section.max_parallel,
        fallback=tuple(section.fallback),
        thinking=section.thinking,
    )


def _agent(name: str, section: AgentSection) -> Agent:
    general = f"You are the {name} of this project. {section.description}".strip()
    return Agent(
        name=name,
        model=section.model,
        description=section.description,
        tools=None if section.tools is None else tuple(section.tools),
        prompt=section.prompt or _PROMPTS.get(name, general),
    )


def _layers(node: NodeSection, inventory: InventorySection) -> Iterator[tuple[str, Layer]]:
    yield "defaults", inventory.defaults
    for group in node.groups:
        yield f"group {group}", inventory.groups[group]
    yield "node", node


@dataclass(slots=True)
class _Merged:
    """Values by dotted key, each with its origin; a later value replaces an earlier one."""

    value: dict[str, Any]
    origin: dict[str, str]

    def set(self, key: str, value: object, origin: str) -> None:
        self.value[key] = value
        self.origin[key] = origin

    def default(self, key: str, value: object, origin: str) -> None:
        if key not in self.value:
            self.set(key, value, origin)


def _node(
    name: str, section: NodeSection, layers: Iterable[tuple[str, Layer]], models: list[Model]
) -> Node:
    merged = _Merged(dict(_BUILT_IN), dict.fromkeys(_BUILT_IN, "built-in"))
    for origin, layer in layers:
        for key, value in _set_keys(layer):
            merged.set(key, value, origin)
    provider = _provider(section)
    merged.set("provider", provider, "node" if provider != OLLAMA else "built-in")
    ssh = None
    if provider != OLLAMA:
        merged.set("ssh", "none", "derived: its provider is not ollama")
    elif merged.value.get("ssh") != "none":
        ssh = _ssh(name, section.endpoint, merged)
        _ollama_defaults(ssh, section.endpoint, models, merged)
    return Node(
        name=name,
        endpoint=merged.value.get("endpoint"),
        ssh=ssh,
        provider=provider,
        groups=tuple(section.groups),
        tags=tuple(section.tags),
        service=merged.value["ollama.service"],
        takeover=merged.value["ollama.takeover"],
        exposure_acknowledged=merged.value["exposure"] is not None,
        prune=bool(merged.value["prune"]),
        sleep=merged.value["power.sleep"],
        environment=dict(sorted(_environment(merged))) if ssh else {},
        origins=merged.origin,
    )


def _set_keys(section: Section, above: str = "") -> Iterator[tuple[str, object]]:
    """The keys that a layer sets, dotted, with their values; an empty section sets nothing.

    A section that is not empty is yielded itself too, since it replaces an outer `ssh: none`.
    """
    for name in section.model_fields_set:
        key, value = f"{above}{name}", getattr(section, name)
        if not isinstance(value, Section):
            yield key, value
        elif value.model_fields_set:
            yield key, value
            yield from _set_keys(value, f"{key}.")


def _ssh(name: str, endpoint: str | None, merged: _Merged) -> Ssh:
    if merged.value.get("ssh.host") is None:
        if endpoint:
            merged.set("ssh.host", address.host_of(endpoint), "derived: the endpoint's host")
        else:
            merged.set("ssh.host", name, "derived: the node's name")
    settings: dict[str, Any] = {
        key: merged.value.get(f"ssh.{key}") for key in SshSection.model_fields
    }
    return Ssh(**settings)


def _ollama_defaults(ssh: Ssh, endpoint: str | None, models: list[Model], merged: _Merged) -> None:
    port = (urlsplit(endpoint).port if endpoint else None) or address.OLLAMA_PORT
    host, why = "0.0.0.0", "the gateway must reach it"  # noqa: S104  the plan refuses public hosts
    if ssh.is_local:
        reached_at = address.host_of(endpoint) if endpoint else ssh.host
        is_exact = address.is_address(reached_at) and address.is_loopback(reached_at)
        host, why = reached_at if is_exact else "127.0.0.1", "this machine only"
    merged.default("ollama.host", address.join_host_port(host, port), f"derived: {why}")
    if models:
        _defaults_for_models(models, merged)
    if not endpoint:
        here, port = address.place_of(merged.value["ollama.host"] or "")
        url = address.join_host_port(here if ssh.is_local else ssh.host, port)
        origin = "derived: ssh.host and the port of ollama.host"
        merged.set("endpoint", f"http://{url.replace('%', '%25')}", origin)


def _defaults_for_models(models: list[Model], merged: _Merged) -> None:
    contexts = [model.context for model in models if model.context]
    if contexts:
        largest = str(max(contexts))
        merged.default("ollama.context_length", largest, "derived: largest context mapped here")
    default = merged.value.get("ollama.context_length")
    loaded = {(model.ollama_model.casefold(), str(model.context or default)) for model in models}
    merged.default(
        "ollama.max_loaded_models", str(len(loaded)), "derived: number of models mapped here"
    )
    merged.default(
        "ollama.num_parallel",
        str(max(model.max_parallel for model in models)),
        "derived: largest max_parallel mapped here",
    )


def _environment(merged: _Merged) -> Iterator[tuple[str, str]]:
    """The variables to set; one with the value None is not managed."""
    for key, value in merged.value.items():
        scope, _, name = key.partition(".")
        if scope != "ollama" or value is None:
            continue
        if name in variables.TYPED:
            yield variables.TYPED[name][0], value
        elif name.startswith("env."):
            yield name.removeprefix("env."), value
