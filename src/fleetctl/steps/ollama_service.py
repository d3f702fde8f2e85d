"""ollama_service: Ollama runs, starts at boot, and runs with what is desired now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from fleetctl import backends
from fleetctl.model import variables
from fleetctl.model.facts import Facts, Host, Service, Unknown
from fleetctl.model.plan import Change, Finding, Level, Restart, Supervise
from fleetctl.steps import Step, Subject


class OllamaService(Step):
    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        service, wanted = subject.service, subject.node.environment
        if service is None:
            yield backends.absence(subject.node, subject.facts)
            return
        if service.blocked:
            yield Finding(Level.OBSTACLE, service.blocked, service.fix)
            return
        rival = backends.rival(service, subject.facts) if subject.node.takeover else None
        if rival is not None and service.creatable:
            yield Supervise("displace", service.as_root)
        yield from _others(service, subject.facts, rival)
        if not service.enabled:
            yield Supervise("enable", service.as_root)
        if service.reload_pending:
            yield Supervise("reload", service.as_root)
        if not service.active:
            yield Restart(service.as_root, ("it does not run",), running=False)
        elif stale := list(_stale(service, wanted, subject.facts.host)):
            yield Restart(service.as_root, tuple(stale))
        if service.active:
            yield from _unseen(service, wanted)
            yield from _left_over(service, wanted)
            yield from _slow(service, subject.facts.host)


def _stale(service: Service, wanted: Mapping[str, str], host: Host) -> Iterator[str]:
    """Why the running server must be started again; derived from what it is, not what we did."""
    for variable, value in wanted.items():
        given = _given(service, variable)
        seen = service.seen(variable)
        if given is not None and variables.agrees(variable, value, given):
            continue  # it has been told; whether it listens is another matter
        if seen is not None and not variables.agrees(variable, value, seen):
            shown = host.shortened(variables.in_words(variable, seen))
            yield f"it runs with {variable} {shown}"
        elif seen is None and isinstance(service.running, Mapping):
            yield f"it runs without {variable}"
    for source in service.sources:
        if source.ours:
            for variable in source.values:
                if variable not in wanted and _given(service, variable) is not None:
                    yield f"it still runs with {variable}"


def _given(service: Service, variable: str) -> str | None:
    return service.running.get(variable) if isinstance(service.running, Mapping) else None


def _unseen(service: Service, wanted: Mapping[str, str]) -> Iterator[Finding]:
    """What Ollama makes of its environment, and what of that cannot be known."""
    if isinstance(service.effective, Unknown):
        why = service.effective.why
        if isinstance(service.running, Unknown):
            text = f"what Ollama runs with is not known, because {service.running.why}"
            yield Finding(Level.UNKNOWN, text, "let the user read it, or use -K for sudo")
        else:
            yield Finding(Level.UNKNOWN, f"what Ollama makes of its values is not known: {why}")
        return
    for variable, value in wanted.items():
        given, seen = _given(service, variable), service.effective.get(variable)
        told = given is not None and variables.agrees(variable, value, given)
        if told and seen is not None and not variables.agrees(variable, value, seen):
            text = f"Ollama was given {variable}={given} and uses {seen or '(nothing)'}"
            yield Finding(Level.OBSTACLE, text, "this version of Ollama does not take the value")


def _left_over(service: Service, wanted: Mapping[str, str]) -> Iterator[Finding]:
    """What the running server was given once, and its next start would not give it."""
    given = service.running if isinstance(service.running, Mapping) else {}
    still = {*wanted, *(variable for source in service.sources for variable in source.values)}
    for variable, value in given.items():
        if variable.startswith("OLLAMA_") and variable not in still:
            text = f"Ollama runs with {variable}={value}, which no file of its service sets"
            yield Finding(Level.WARNING, text, "restart it there to be rid of that")


def _slow(service: Service, host: Host) -> Iterator[Finding]:
    """A Mac gives its GPU to whoever is logged in; others are not assured of it."""
    devices = service.computes_on
    if host.machine == "arm64" and host.system == "Darwin" and devices and "Metal" not in devices:
        text = f"Ollama does not use the GPU: its log names {', '.join(devices)}"
        yield Finding(Level.WARNING, text, "it may need somebody logged in at the screen")


def _others(service: Service, facts: Facts, rival: Service | None) -> Iterator[Finding]:
    """Servers that somebody else has started."""
    known = (service.pid, rival and rival.pid)
    for server in facts.servers:
        if server.pid in known or server.unit == PurePosixPath(service.definition).name:
            continue
        text = f"another Ollama serves here: pid {server.pid} of user {server.uid}"
        by = f", in {server.unit}" if server.unit else ""
        yield Finding(Level.OBSTACLE, text + by, "stop one of the two")
