"""How many nodes may fail before the rest is left alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from fleetctl.model.report import Outcome


@dataclass(frozen=True, slots=True)
class Budget:
    allowed: int | None
    before: int
    """How many had failed before any was changed, those that could not be reached included."""
    stop: threading.Event
    """The user wants it to end."""
    failed: set[str] = field(default_factory=set)

    def count(self, outcome: Outcome) -> None:
        """A node that was left alone has not failed."""
        if outcome.state not in ("changed", "skipped"):
            self.failed.add(outcome.node)

    def halted(self) -> str | None:
        """Why no other node shall be begun."""
        if self.stop.is_set():
            return "the run was stopped before it"
        failed = self.before + len(self.failed)
        if self.allowed is not None and failed > self.allowed:
            have = "node has" if failed == 1 else "nodes have"
            return f"{failed} {have} failed, and --max-fail allows {self.allowed}"
        return None
