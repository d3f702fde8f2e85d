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
    if known:
        return max(known, key=lambda service: (service.active, service.scope == "system"))
    return _without_service(node, facts)


def _without_service(node: Node, facts: Facts) -> Finding:
    where = f"as a {node.service} service " if node.service != "auto" else ""
    if not facts.services:
        what = "there is no init system that fleetctl knows"
        wsl = "in WSL, set systemd=true in /etc/wsl.conf and restart it"
        fix = wsl if "wsl" in facts.host.traits else "run Ollama there by hand, with `ssh: none`"
        return Finding(Level.OBSTACLE, what, fix)
    if any(service.loaded for service in facts.services):
        return Finding(
            Level.OBSTACLE, f"Ollama does not run {where}here", "set ollama.service: auto"
        )
    if facts.host.programs:
        what = f"{facts.host.programs[0]} is there, but no service runs it"
        return Finding(Level.OBSTACLE, what, f"fleetctl provision {node.name}")
    fix = f"install Ollama there, then: fleetctl provision {node.name}"
    return Finding(Level.OBSTACLE, "Ollama is not installed", fix)
