"""How changes go over a fleet, as whoever wants them has said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Share = Callable[[int], int]
"""How many that is, of so many nodes."""


@dataclass(frozen=True, slots=True)
class Rollout:
    yes: bool
    """Whether nobody is asked."""
    serial: Share
    """How many may be down at once."""
    max_fail: Share | None
    health_timeout: float
    settle: float
    wait_idle: bool
