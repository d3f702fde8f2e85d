"""A fleet as it should be: nodes, models, agents and the gateway, with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fleetctl.model import address
from fleetctl.model.facts import ServiceSpec

OLLAMA = "ollama"
"""The provider of nodes that fleetctl provisions; others are only routed to and watched."""

CONTROLLER = "controller"
"""The machine that fleetctl runs on, as a target; no node may have this name."""


@dataclass(frozen=True, slots=True)
class Ssh:
    host: str
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    jump: str | None = None

    @property
    def is_local(self) -> bool:
        """Loopback is this machine itself, unless a port says that an SSH server is meant."""
        return self.port is None and self.jump is None and address.is_loopback(self.host)

    @property
    def target(self) -> tuple[str, int, str | None]:
        """What makes two SSH addresses the same machine."""
        return ("localhost" if self.is_local else self.host.lower(), self.port or 22, self.jump)


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    endpoint: str | None
    """How the gateway reaches it; none for a cloud provider."""
    ssh: Ssh | None
    """None: routed and watched, never provisioned."""
    provider: str
    groups: tuple[str, ...]
    tags: tuple[str, ...]
    service: str
    takeover: bool
    exposure_acknowledged: bool
    prune: bool
    sleep: str | None
    """`never`, or None: unmanaged."""
    environment: Mapping[str, str]
    """The variables that its Ollama should run with."""
    origins: Mapping[str, str]
    """Where each effective value came from, by its key in the inventory."""

    @property
    def listens(self) -> str:
        """Where its Ollama should listen."""
        return self.environment.get("OLLAMA_HOST", f"127.0.0.1:{address.OLLAMA_PORT}")


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    nodes: tuple[str, ...]
    ollama_model: str
    litellm_alias: str
    context: int | None
    timeout: int
    max_parallel: int
    fallback: tuple[str, ...]
    thinking: bool


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    model: str
    description: str
    tools: tuple[str, ...] | None
    """None: all that the coding agent has."""
    prompt: str


@dataclass(frozen=True, slots=True)
class Gateway:
    provider: str
    host: str
    port: int
    master_key_env: str


@dataclass(frozen=True, slots=True)
class Fleet:
    name: str
    file: Path
    gateway: Gateway
    groups: tuple[str, ...]
    nodes: Mapping[str, Node]
    models: Mapping[str, Model]
    agents: Mapping[str, Agent]

    @property
    def root(self) -> Path:
        return project_root(self.file)

    @property
    def state(self) -> Path:
        """fleetctl's own folder in the project: known hosts, logs, transactions."""
        return self.root / ".fleetctl"


@dataclass(frozen=True, slots=True)
class Target:
    """A machine that a run examines and changes: a node, or the controller."""

    name: str
    link: Ssh
    """How it is reached; the controller and local nodes without SSH."""
    node: Node | None
    """None for the controller."""
    services: tuple[ServiceSpec, ...] = ()
    """The ways in which its service may be run, of which the facts decide one."""
    folder: Path | None = None
    """Where its files with a relative path are: the controller's project."""


def project_root(inventory: Path) -> Path:
    """The project's folder: the inventory's own, or the parent of `inventory/`."""
    folder = inventory.absolute().parent
    return folder.parent if folder.name == "inventory" else folder
