"""Many nodes: how many may be down at once, and how many may fail before the rest is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from fleetctl.errors import Exit
from fleetctl.execute.parallel import in_parallel
from fleetctl.model.plan import NodePlan
from fleetctl.model.report import Outcome


class Budget:
    """How many nodes have failed, those that could not be reached included."""

    def __init__(self, allowed: int | None, failed: int, stop: threading.Event) -> None:
        self._allowed = allowed
        self._before = failed
        self._names = set[str]()
        self._stop = stop
        self._lock = threading.Lock()

    def fails(self, node: str) -> None:
        with self._lock:
            self._names.add(node)

    @property
    def _failed(self) -> int:
        return self._before + len(self._names)

    def halted(self) -> str | None:
        """Why no other node shall be begun."""
        if self._stop.is_set():
            return "the run was stopped before it"
        if self._allowed is not None and self._failed > self._allowed:
            return f"{self._failed} nodes have failed, and --max-fail allows {self._allowed}"
        return None


def roll_out(
    plans: Iterable[NodePlan],
    carry_out: Callable[[NodePlan], Outcome],
    budget: Budget,
    forks: int,
) -> Iterator[Outcome]:
    """Outcomes as they come; the budget is looked at before each node begins."""

    def one(plan: NodePlan) -> Outcome:
        if reason := budget.halted():
            return Outcome(plan.node, "skipped", message=reason)
        outcome = carry_out(plan)
        if outcome.exit_code != Exit.OK:
            budget.fails(plan.node)
        return outcome

    for _, outcome in in_parallel(one, plans, forks):
        yield outcome
