"""ollama_env: the variables that a node's Ollama should run with."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from fleetctl.model import ollama_log, variables
from fleetctl.model.facts import ABSENT, Host, Service
from fleetctl.model.plan import Change, Finding, WriteFile
from fleetctl.render import Word
from fleetctl.steps import Step, StepContext
from fleetctl.steps.file import difference


class OllamaEnv(Step):
    kind: ClassVar[str] = "ollama_env"

    def plan(self, context: StepContext, seen: None) -> Iterator[Change | Finding]:
        service, host = context.service, context.facts.host
        if service is None:
            return
        values = _template_values(service, host)
        for described in service.spec.files:
            file = service.files.get(host.expanded(described.path), ABSENT)
            details: tuple[str, ...] = ()
            if described.decode:
                written = described.decode(file.content if isinstance(file.content, str) else "")
                details = tuple(_details(written, service, host))
            wanted = WriteFile(
                described.path,
                None,
                context.templates.render(described.template, values),
                details=details,
                scope=service.scope,
                defines=described.defines,
            )
            yield from difference(file, wanted)


def _template_values(service: Service, host: Host) -> dict[str, object]:
    spec = service.spec
    program, *arguments = spec.argv
    found = program if "/" in program else (*host.programs, "")[0]
    return {
        "scope": spec.scope,
        "service": {
            "id": (*spec.ids, spec.name)[0],
            "user": host.user,
            "home": host.home,
            "argv": [found, *arguments],
            "log": host.expanded(spec.log),
            "files": [host.expanded(file.path) for file in spec.files],
        },
        "environment": [
            {"name": Word(variable), "value": value} for variable, value in spec.env.items()
        ],
    }


def _details(written: Mapping[str, str], service: Service, host: Host) -> Iterator[str]:
    """One line for each variable whose value in our file changes."""
    wanted = service.spec.env
    for variable, value in wanted.items():
        if written.get(variable) == value:
            continue
        used = ollama_log.seen(service, variable)
        if used is not None and variables.agrees(variable, value, used):
            yield f"{variable} stays {variables.in_words(variable, value)}"
        else:
            before = variables.in_words(variable, written.get(variable, used or ""))
            shown = host.shortened(before)
            yield f"{variable} {shown} → {variables.in_words(variable, value)}"
    for variable in written:
        if variable not in wanted:
            yield f"{variable} {written[variable]} → not set by fleetctl"
