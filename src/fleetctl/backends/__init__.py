"""How each init system runs a service; no other room knows one by name."""

from __future__ import annotations

from collections.abc import Mapping

from fleetctl.backends import systemd
from fleetctl.model.facts import Facts, Service
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Finding, Level
from fleetctl.shell import Part, Record

_ALL = (systemd,)


def parts() -> list[Part]:
    """What to ask a node about its services, whatever its system."""
    return [part for backend in _ALL for part in backend.parts()]


def read(records: Mapping[str, Record]) -> tuple[Service, ...]:
    return tuple(service for backend in _ALL for service in backend.read(records))


def files(service: Service) -> dict[str, str]:
    """Template → path of every file that describes the service as we want it; `~` is the home."""
    backend = next(each for each in _ALL if service.backend == each.NAME)
    described = backend.FILES[service.scope]
    return {f"{backend.NAME}/{template}": path for template, path in described.items()}


def service_of(node: Node, facts: Facts) -> Service | Finding:
    """The service that is to be kept as the inventory says, or why there is none."""
    known = [service for service in facts.services if service.loaded or service.masked]
    if node.service != "auto":
        known = [service for service in known if service.scope == node.service]
    if known and "nixos" not in facts.host.traits:
        return max(known, key=lambda service: (service.active, service.scope == "system"))
    what, fix = _why_not(node, facts)
    return Finding(Level.OBSTACLE, what, fix)


def _why_not(node: Node, facts: Facts) -> tuple[str, str]:
    """What runs Ollama instead, and what its owner can do."""
    host = facts.host
    if "nixos" in host.traits:
        return "NixOS keeps its services itself", "set services.ollama.environmentVariables there"
    if not facts.services:
        wsl = "in WSL, set systemd=true in /etc/wsl.conf and restart it"
        fix = wsl if "wsl" in host.traits else "run Ollama there by hand, with `ssh: none`"
        return "there is no init system that fleetctl knows", fix
    if any(service.loaded for service in facts.services):
        return f"no {node.service} service runs Ollama here", "set ollama.service: auto"
    for server in facts.servers:
        if server.unit.startswith(("docker", "libpod")):
            return "Ollama runs in a container", "set its variables where the container is made"
        by = f", in {server.unit}" if server.unit else ""
        what = f"Ollama was started by hand: pid {server.pid} of user {server.uid}{by}"
        return what, "stop it, and make it a service"
    if any(program.startswith("/snap/") for program in host.programs):
        return "Ollama is a snap", "set its variables with `snap set ollama`"
    if host.programs:
        return f"{host.programs[0]} is there, but no service runs it", "make it a service"
    return "Ollama is not installed", "install it there"
