"""How each init system runs a service; no other room knows one by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from fleetctl.backends import launchd, systemd
from fleetctl.backends.service_file import ServiceFile
from fleetctl.model.facts import Facts, Mode, Service
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Finding, Level
from fleetctl.shell import Part, Record
from fleetctl.shell.transaction import Supervisor


class _Backend(Protocol):
    @property
    def FILES(self) -> Mapping[Mode, tuple[ServiceFile, ...]]: ...  # noqa: N802

    def parts(self) -> list[Part]: ...

    def read(self, records: Mapping[str, Record], /) -> Iterator[Service]: ...

    def supervisor(self, service: Service, rival: Service | None, /) -> Supervisor: ...


_ALL: tuple[_Backend, ...] = (systemd, launchd)


def parts() -> list[Part]:
    """What to ask a node about its services, whatever its system."""
    return [part for backend in _ALL for part in backend.parts()]


def read(records: Mapping[str, Record]) -> tuple[Service, ...]:
    return tuple(service for backend in _ALL for service in backend.read(records))


def files(service: Service) -> tuple[ServiceFile, ...]:
    """Every file that describes the service as we want it."""
    return _backend(service).FILES[service.mode]


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    """How the service is restarted, and so on, in shell; and how a rival makes room for it."""
    return _backend(service).supervisor(service, rival)


def rival(service: Service, facts: Facts) -> Service | None:
    """What runs the server now in place of the service that should, or did before it was made."""
    before = {kept.displaced for kept in facts.kept.values()}
    others = (each for each in facts.services if each.active or each.mode in before)
    same = (each for each in others if each.scope == service.scope)
    return next((each for each in same if each.mode != service.mode), None)


def _backend(service: Service) -> _Backend:
    return next(each for each in _ALL if service.mode in each.FILES)


def service_of(node: Node, facts: Facts) -> Service | None:
    """The service that is to be kept as the inventory says; `absence` says why there is none."""
    if "nixos" in facts.host.traits:
        return None
    known = [each for each in facts.services if each.loaded or each.blocked]
    if facts.host.programs and (node.service != "auto" or not facts.servers):
        known += [each for each in facts.services if each.creatable and each not in known]
    if node.service != "auto":
        known = [service for service in known if service.mode == node.service]
    return max(known, key=lambda each: (each.active, each.loaded, each.preference), default=None)


def absence(node: Node, facts: Facts) -> Finding:
    """What runs Ollama instead of a service, and what its owner can do."""
    what, fix = _why_not(node, facts)
    return Finding(Level.OBSTACLE, what, fix)


def _why_not(node: Node, facts: Facts) -> tuple[str, str]:
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
