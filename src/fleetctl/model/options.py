"""What a command line asks for: which nodes, how they are reached, how changes are rolled out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Flags:
    """The options that all commands which reach nodes have."""

    file: Path | None
    timeout: float
    ask_sudo_password: bool
    sudo_password_file: Path | None
    as_json: bool
    only: tuple[str, ...] = ()
    diff: bool = True
    forks: int = 32
    json_events: bool = False
    limit: str | None = None


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
