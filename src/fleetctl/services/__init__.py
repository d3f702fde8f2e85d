"""How a service is described, asked about and controlled; no other room knows a service manager.

Each module is one manager, or a special way to run a service with it. The modules know nothing of
what a service does, but for the two that are about one app and one formula.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from fleetctl.model.facts import Answers, Facts, Mode, Service, ServiceSpec
from fleetctl.services import homebrew, launchd, ollama_app, systemd
from fleetctl.shell import Question
from fleetctl.shell.transaction import Supervisor

__all__ = ["choose", "describe", "questions", "read", "rival", "supervisor"]


class _Manager(Protocol):
    @property
    def MODES(self) -> Sequence[Mode]: ...  # noqa: N802

    def describe(self, service: ServiceSpec, /) -> Iterator[ServiceSpec]: ...

    def questions(self, specs: Sequence[ServiceSpec], /) -> list[Question]: ...

    def read(self, specs: Sequence[ServiceSpec], answers: Answers, /) -> Iterator[Service]: ...

    def supervisor(self, service: Service, rival: Service | None, /) -> Supervisor: ...


class _Displaceable(Protocol):
    """A way that another service may take over from, and give back to."""

    def displacing(self, rival: Service, /) -> Supervisor: ...


_MANAGERS: tuple[_Manager, ...] = (systemd, launchd, ollama_app, homebrew)
_DISPLACEABLE: dict[Mode, _Displaceable] = {"app": ollama_app, "brew": homebrew}


def describe(service: ServiceSpec) -> tuple[ServiceSpec, ...]:
    """The service in every way in which a machine may run it."""
    return tuple(spec for manager in _MANAGERS for spec in manager.describe(service))


def questions(specs: Sequence[ServiceSpec]) -> list[Question]:
    """launchd is asked about the jobs of every way to run a service on a Mac."""
    on_macs = [spec for spec in specs if spec.mode not in systemd.MODES]
    return [
        *systemd.questions(_of(systemd, specs)),
        *launchd.questions(on_macs),
        *ollama_app.questions(_of(ollama_app, specs)),
        *homebrew.questions(_of(homebrew, specs)),
    ]


def read(specs: Sequence[ServiceSpec], answers: Answers) -> tuple[Service, ...]:
    return tuple(
        service for manager in _MANAGERS for service in manager.read(_of(manager, specs), answers)
    )


def _of(manager: _Manager, specs: Sequence[ServiceSpec]) -> list[ServiceSpec]:
    return [spec for spec in specs if spec.mode in manager.MODES]


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    """How the service is restarted and so on, and how a rival is displaced for it."""
    manager = next(each for each in _MANAGERS if service.mode in each.MODES)
    own = manager.supervisor(service, rival)
    if rival is None or rival.mode not in _DISPLACEABLE:
        return own
    other = _DISPLACEABLE[rival.mode].displacing(rival)
    libraries = f"{own.library}\n{other.library}"
    return replace(own, library=libraries, displace=other.displace, give_back=other.give_back)


def rival(
    service: Service, facts: Facts, displaced: frozenset[str] = frozenset()
) -> Service | None:
    """Another service that runs the same server now, or did before ours displaced it."""
    others = (each for each in facts.services if each.active or each.mode in displaced)
    same = (each for each in others if each.scope == service.scope)
    return next((each for each in same if each.mode != service.mode), None)


def choose(wanted: str, facts: Facts) -> Service | None:
    """The service to manage: the `wanted` mode, or with `auto` the one that runs or fits best."""
    if "nixos" in facts.host.traits:
        return None
    known = [each for each in facts.services if each.loaded or each.blocked]
    if facts.host.programs and (wanted != "auto" or not facts.host.servers):
        known += [each for each in facts.services if each.creatable and each not in known]
    if wanted != "auto":
        known = [service for service in known if service.mode == wanted]
    return max(known, key=lambda each: (each.active, each.loaded, each.preference), default=None)
