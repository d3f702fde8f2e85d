"""command: commands of the user's own, with a guard that says whether they are still needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import model_validator

from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Change, Finding, Level, RunCommand
from fleetctl.shell import Part, quote
from fleetctl.steps import Step, Subject
from fleetctl.steps.file import in_shell

# What cannot be read as shell says nothing of what it guards, whatever it then ends with.
_GUARD = """\
/bin/sh -n -c {guard} 2>&1 || exit 127
/bin/sh -c {guard} 2>&1 >/dev/null"""


class CommandStep(Step):
    run: str
    unless: str | None = None
    creates: str | None = None
    sudo: bool = False

    @model_validator(mode="after")
    def _needs_a_guard(self) -> Self:
        if bool(self.unless) == bool(self.creates):
            raise ValueError("needs `unless` or `creates`, or nobody could tell what it changes")
        return self

    def probe(self, name: str) -> list[Part]:
        guard = quote(self.unless or f"[ -e {in_shell(self.creates or '')} ]")
        return [Part(f"guard {name}", _GUARD.format(guard=guard))]

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        done = subject.facts.guards.get(name, Unknown("it was not asked"))
        if isinstance(done, Unknown):
            yield Finding(Level.UNKNOWN, f"whether to run {name!r} is not known: {done.why}")
        elif not done:
            yield RunCommand(name, self.run, self.sudo)
