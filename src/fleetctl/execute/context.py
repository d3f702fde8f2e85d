"""What changing a target takes, the same for all targets of a run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from fleetctl.execute.rollout import Budget
from fleetctl.gather import Access
from fleetctl.links import Link
from fleetctl.model.events import Listener
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Target
from fleetctl.model.options import Timeouts
from fleetctl.model.plan import Plan


@dataclass(frozen=True, slots=True)
class RunContext:
    connect: Callable[[Target], Link]
    look: Callable[[Link, Target], Facts]
    """Gathers the facts again, with the questions of the run."""
    replan: Callable[[Target, Facts], Plan]
    access: Access
    tell: Listener
    owner: str
    timeouts: Timeouts
    gate: AbstractContextManager[object]
    """Held from the restart of a serving node until it is healthy."""
    budget: Budget
    """Counts a failure before the gate opens for the next node."""
    wait_idle: bool
