"""ollama_env: the variables that a node's Ollama should run with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetctl import backends
from fleetctl.model import address, variables
from fleetctl.model.facts import File, Host, Service, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Change, Finding, Level, WriteFile
from fleetctl.render import Word
from fleetctl.steps import Step, Subject
from fleetctl.steps.file import difference


class OllamaEnv(Step):
    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        service, node = subject.service, subject.node
        if service is None:
            return
        host = subject.facts.host
        files = {host.expanded(file.path): file for file in backends.files(service)}
        values = {
            "scope": service.scope,
            "service": {
                "user": host.user,
                "home": host.home,
                "program": (*host.programs, "")[0],
                "log": host.expanded(service.log),
                "files": list(files),
            },
            "environment": [
                {"name": Word(variable), "value": value}
                for variable, value in node.environment.items()
            ],
        }
        for path, described in files.items():
            file = service.files.get(path, File(None))
            details: tuple[str, ...] = ()
            if described.decode:
                before = file.content if isinstance(file.content, str) else ""
                written = described.decode(before)
                details = tuple(_details(node.environment, written, service, host))
            wanted = WriteFile(
                described.path,
                None,
                subject.templates.render(described.template, values),
                details=details,
                as_root=service.as_root,
                defines=described.defines,
            )
            yield from difference(file, wanted)
        yield from _rivals(node.environment, service)
        yield from _not_here(node, host)


def _details(
    wanted: Mapping[str, str], written: Mapping[str, str], service: Service, host: Host
) -> Iterator[str]:
    """One line a variable whose value in our file changes."""
    for variable, value in wanted.items():
        if written.get(variable) == value:
            continue
        seen = service.seen(variable)
        if seen is not None and variables.agrees(variable, value, seen):
            yield f"{variable} stays {variables.in_words(variable, value)}"
        else:
            before = variables.in_words(variable, written.get(variable, seen or ""))
            shown = host.shortened(before)
            yield f"{variable} {shown} → {variables.in_words(variable, value)}"
    for variable in written:
        if variable not in wanted:
            yield f"{variable} {written[variable]} → not set by fleetctl"


def _not_here(node: Node, host: Host) -> Iterator[Finding]:
    """A server can listen only on addresses of its own machine."""
    where, _ = address.place_of(node.listens)
    if isinstance(host.addresses, Unknown) or not address.is_address(where):
        return
    if where not in host.addresses and not address.is_loopback(where):
        text = f"ollama.host is {where}, which is no address of this machine"
        yield Finding(Level.OBSTACLE, text, f"it has {', '.join(host.addresses)}")


def _rivals(wanted: Mapping[str, str], service: Service) -> Iterator[Finding]:
    """Other files that set the same variables: those that lose to ours, and those that win."""
    for source in service.sources:
        if source.ours:
            continue
        for variable, value in source.values.items():
            if variable not in wanted or variables.agrees(variable, wanted[variable], value):
                continue
            text = f"{source.path} sets {variable}={value}"
            if source.wins:
                fix = f"take {variable} out of that file"
                yield Finding(Level.OBSTACLE, f"{text}, and wins over fleetctl's file", fix)
            else:
                yield Finding(Level.NOTE, f"{text} too; fleetctl's file wins")
