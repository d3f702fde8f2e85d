"""How changes are rolled out over a fleet, and the deadlines of one node's change."""

from collections.abc import Callable
from dataclasses import dataclass

Share = Callable[[int], int]
"""A count or a percentage, applied to a number of nodes."""


@dataclass(frozen=True, slots=True)
class Rollout:
    yes: bool
    """Do not ask for confirmation."""
    serial: Share
    """How many nodes may be down at once."""
    max_fail: Share | None
    health_timeout: float
    settle: float
    wait_idle: bool


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. The node waits longer for a verdict than the controller needs to reach it."""

    restart: int = 120
    command: int = 600
    healthy: float = 60
    stable: float = 3
    silent: int = 20
    """Without a heartbeat the node takes the controller for dead."""

    @property
    def verdict(self) -> int:
        return int(self.healthy + self.stable) + 60
