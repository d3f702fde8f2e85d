"""preflight: asks what the blocking checks of `audit/` need to know about a new machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fleetctl.model.facts import Answers
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Change, Finding
from fleetctl.shell import HOST, Question, survey
from fleetctl.steps import Step, StepContext


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    sudo: str
    """root, free, refused or absent."""
    free: dict[str, int]
    """Kilobytes left, by mount point."""
    ports: frozenset[int]
    """TCP ports that are listened on."""


class Preflight(Step):
    kind: ClassVar[str] = "preflight"

    def questions(self, target: Target) -> list[Question]:
        return [
            Question("sudo", "ask_sudo", library=HOST),
            Question("disk", 'df -Pk /etc /var "$HOME" 2>/dev/null'),
            Question("ports", survey.ask_ports("LISTEN"), library=HOST),
        ]

    def read(self, answers: Answers) -> PreflightFacts | None:
        if not answers:
            return None
        rows = [line.split() for line in answers["disk"].text.splitlines()]
        free = {row[5]: int(row[3]) for row in rows if len(row) > 5 and row[3].isdecimal()}
        ports = frozenset(survey.ports(answers["ports"].text))
        return PreflightFacts(answers["sudo"].text.strip(), free, ports)

    def plan(self, context: StepContext, seen: PreflightFacts | None) -> Iterator[Change | Finding]:
        """Nothing: the audit reports what was found."""
        return iter(())
