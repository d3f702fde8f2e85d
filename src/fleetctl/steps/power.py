"""power: keep a Mac awake, where the inventory says `sleep: never`."""

import re
from collections.abc import Iterator
from typing import ClassVar

from fleetctl.model.facts import Answers, Unknown
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Change, Finding, Level, RunCommand
from fleetctl.shell import Question
from fleetctl.steps import Step, StepContext


class Power(Step):
    kind: ClassVar[str] = "power"

    def questions(self, target: Target) -> list[Question]:
        return [Question("pmset", "pmset -g custom", os="macos")]

    def read(self, answers: Answers) -> bool | Unknown:
        """Whether the machine sleeps on any source of power."""
        answer = answers.get("pmset")
        if answer is None:
            return Unknown("it is not a Mac")
        if answer.status != 0:
            return Unknown("pmset failed")
        return re.search(r"^ *sleep +[1-9]", answer.text, re.MULTILINE) is not None

    def plan(self, context: StepContext, seen: bool | Unknown) -> Iterator[Change | Finding]:
        if context.node.sleep != "never":
            return
        if isinstance(seen, Unknown):
            yield Finding("ST030", Level.NOTE, f"power.sleep is not managed: {seen.why}")
        elif seen:
            commands = "pmset -a sleep 0 disksleep 0 womp 1 autorestart 1"
            yield RunCommand("never sleep", commands, "system")
