"""A machine in one line, for somebody who sees it for the first time."""

from __future__ import annotations

from fleetctl.model.facts import Facts, Unknown
from fleetctl.ui.console import printable

_SYSTEMS = {"Darwin": "macOS"}


def described(facts: Facts) -> str:
    host = facts.host
    system = host.distribution or _SYSTEMS.get(host.system, host.system)
    return printable(f"{system}, {host.machine}, {_ollama(facts)}")


def _ollama(facts: Facts) -> str:
    api = facts.api
    if isinstance(api, Unknown):
        is_there = facts.host.programs or any(service.loaded for service in facts.services)
        return "Ollama is installed and does not answer" if is_there else "without Ollama"
    active = next((service for service in facts.services if service.active), None)
    how = f"as a {active.scope} service" if active else "not as a service"
    count = f"{len(api.models)} model{'' if len(api.models) == 1 else 's'}"
    return f"Ollama {api.version} {how}, {count} there"
