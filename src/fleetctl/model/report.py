"""What came of a run, and the exit code that summarises it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fleetctl.errors import Exit
from fleetctl.model.plan import Level, Plan, Result

State = Literal[
    "changed", "failed", "rolled back", "dirty", "locked", "skipped", "unreachable", "refused"
]

_CODES: Mapping[State, Exit] = {
    "changed": Exit.OK,
    "failed": Exit.FAILED,
    "rolled back": Exit.FAILED,
    "skipped": Exit.FAILED,
    "dirty": Exit.DIRTY,
    "locked": Exit.LOCKED,
    "unreachable": Exit.UNREACHABLE,
    "refused": Exit.REFUSED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a target that was to be changed."""

    target: str
    state: State
    done: tuple[str, ...] = ()
    """Titles of the changes that were made and kept."""
    message: str = ""
    hint: str | None = None
    output: tuple[str, ...] = ()
    """The last lines that the machine printed about it."""

    @property
    def exit_code(self) -> Exit:
        return _CODES[self.state]


@dataclass(frozen=True, slots=True)
class Report:
    results: tuple[Result, ...]
    seconds: float
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By target, for those that were changed or should have been."""
    stopped: tuple[Exit, ...] = ()
    """The signals that ended the run early."""

    @property
    def exit_code(self) -> Exit:
        ends = (self.outcomes.get(result.target) or result for result in self.results)
        return Exit.worst((*self.stopped, *(end.exit_code for end in ends)))

    @property
    def plans(self) -> list[Plan]:
        return [result for result in self.results if isinstance(result, Plan)]

    @property
    def blocked(self) -> list[Plan]:
        """Plans that cannot be carried out before the user has resolved something."""
        return [plan for plan in self.plans if plan.worst(Level.OBSTACLE)]

    @property
    def unknown(self) -> int:
        """How many things could not be read, on all targets together."""
        findings = [finding for plan in self.plans for finding in plan.findings]
        return sum(finding.level == Level.UNKNOWN for finding in findings)

    @property
    def pending(self) -> list[Plan]:
        """Plans with changes to make."""
        return [plan for plan in self.plans if plan.changes]
