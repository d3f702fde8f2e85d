"""command: commands of the user, with a guard that tells whether they are still needed."""

from collections.abc import Iterator
from typing import ClassVar, Self

from pydantic import model_validator

from fleetctl.model.facts import Answers, Unknown
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Change, Finding, Level, RunCommand
from fleetctl.shell import Question, in_shell, quote
from fleetctl.steps import Step, StepContext


class CommandStep(Step):
    kind: ClassVar[str] = "command"
    run: str
    unless: str | None = None
    creates: str | None = None
    sudo: bool = False

    @model_validator(mode="after")
    def _needs_a_guard(self) -> Self:
        if bool(self.unless) == bool(self.creates):
            raise ValueError("needs `unless` or `creates`, which tell what it changes")
        return self

    def questions(self, target: Target) -> list[Question]:
        """A guard that is not valid shell tells nothing, whatever its exit status."""
        guard = quote(self.unless or f"[ -e {in_shell(self.creates or '')} ]")
        commands = f"/bin/sh -n -c {guard} 2>&1 || exit 127\n/bin/sh -c {guard} 2>&1 >/dev/null"
        return [Question("guard", commands)]

    def read(self, answers: Answers) -> bool | Unknown:
        """Whether what the commands bring about is there already."""
        answer = answers.get("guard")
        if answer is None:
            return Unknown("it was not asked")
        if answer.status >= 126:
            return Unknown(answer.text.strip() or f"its guard ended with {answer.status}")
        return answer.status == 0

    def plan(self, context: StepContext, seen: bool | Unknown) -> Iterator[Change | Finding]:
        if isinstance(seen, Unknown):
            text = f"whether to run {context.step!r} is not known: {seen.why}"
            yield Finding("ST001", Level.UNKNOWN, text)
        elif not seen:
            yield RunCommand(context.step, self.run, "system" if self.sudo else "user")
