"""What came of a run, and the exit code that speaks for it."""

from __future__ import annotations

from dataclasses import dataclass

from fleetctl.errors import Exit
from fleetctl.model.plan import NodePlan, Result


@dataclass(frozen=True, slots=True)
class Report:
    results: tuple[Result, ...]
    seconds: float

    @property
    def exit_code(self) -> Exit:
        return Exit.worst(result.exit_code for result in self.results)

    @property
    def plans(self) -> list[NodePlan]:
        return [result for result in self.results if isinstance(result, NodePlan)]
