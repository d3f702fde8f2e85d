"""ollama_service: Ollama runs, is started at boot, and runs with the desired values."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleetctl import services
from fleetctl.model import ollama_log, variables
from fleetctl.model.facts import Facts, Host, Service, Unknown
from fleetctl.model.plan import Change, Finding, Level, Restart, ServiceAction
from fleetctl.steps import Step, StepContext


class OllamaService(Step):
    kind: ClassVar[str] = "ollama_service"

    def plan(self, context: StepContext, seen: None) -> Iterator[Change | Finding]:
        service, facts = context.service, context.facts
        if service is None:
            yield _absence(context.node.service, facts)
            return
        if service.blocked:
            yield Finding("ST021", Level.OBSTACLE, service.blocked, service.hint)
            return
        scope, title = service.scope, service.spec.title
        if context.node.takeover and service.creatable and services.rival(service, facts):
            yield ServiceAction("displace", scope, title)
        if not service.enabled:
            yield ServiceAction("enable", scope, title)
        if service.reload_pending:
            yield ServiceAction("reload", scope, title)
        if not service.active:
            yield Restart(scope, title, ("it does not run",), running=False)
        elif stale := list(_stale(service, facts.host)):
            yield Restart(scope, title, tuple(stale))
        if service.active:
            yield from _effective(service)


def _stale(service: Service, host: Host) -> Iterator[str]:
    """Why the running server must be restarted; derived from its state, not from what we did."""
    wanted = service.spec.env
    for variable, value in wanted.items():
        given, used = service.given(variable), ollama_log.seen(service, variable)
        if given is not None and variables.agrees(variable, value, given):
            continue  # the process has the value; `_effective` checks whether Ollama accepted it
        if used is not None and not variables.agrees(variable, value, used):
            shown = host.shortened(variables.in_words(variable, used))
            yield f"it runs with {variable} {shown}"
        elif used is None and isinstance(service.environment, Mapping):
            yield f"it runs without {variable}"
    for source in service.sources:
        if source.ours:
            for variable in source.values:
                if variable not in wanted and service.given(variable) is not None:
                    yield f"it still runs with {variable}"


def _effective(service: Service) -> Iterator[Finding]:
    """Values that Ollama was given and does not use, and what of that cannot be known."""
    effective = ollama_log.effective(service)
    if isinstance(effective, Unknown):
        if isinstance(service.environment, Unknown):
            text = f"what Ollama runs with is not known, because {service.environment.why}"
            hint = "log in as a user who may read it, or use -K for sudo"
            yield Finding("ST022", Level.UNKNOWN, text, hint)
        else:
            text = f"which values Ollama uses is not known: {effective.why}"
            yield Finding("ST023", Level.UNKNOWN, text)
        return
    for variable, value in service.spec.env.items():
        given, used = service.given(variable), effective.get(variable)
        told = given is not None and variables.agrees(variable, value, given)
        if told and used is not None and not variables.agrees(variable, value, used):
            text = f"Ollama was given {variable}={given} and uses {used or '(nothing)'}"
            hint = "this version of Ollama does not accept the value"
            yield Finding("ST024", Level.OBSTACLE, text, hint)


def _absence(wanted: str, facts: Facts) -> Finding:
    """What runs Ollama instead of a service that fleetctl can manage."""
    what, hint = _why_no_service(wanted, facts)
    return Finding("ST020", Level.OBSTACLE, what, hint)


def _why_no_service(wanted: str, facts: Facts) -> tuple[str, str]:
    host = facts.host
    if "nixos" in host.traits:
        return "NixOS manages its services", "set services.ollama.environmentVariables there"
    if not facts.services:
        wsl = "in WSL, set systemd=true in /etc/wsl.conf and restart it"
        hint = wsl if "wsl" in host.traits else "run Ollama there by hand, with `ssh: none`"
        return "there is no service manager that fleetctl supports", hint
    if any(service.loaded for service in facts.services):
        return f"no {wanted} service runs Ollama here", "set ollama.service: auto"
    for server in host.servers:
        if server.unit.startswith(("docker", "libpod")):
            return "Ollama runs in a container", "set its variables where the container is defined"
        by = f", in {server.unit}" if server.unit else ""
        what = f"Ollama was started by hand: pid {server.pid} of user {server.uid}{by}"
        return what, "stop it, and make it a service"
    if any(program.startswith("/snap/") for program in host.programs):
        return "Ollama is a snap", "set its variables with `snap set ollama`"
    if host.programs:
        return f"{host.programs[0]} exists, but no service runs it", "make it a service"
    return "Ollama is not installed", "install it there"
