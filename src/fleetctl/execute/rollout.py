"""The same work for many targets at a time, and how many may fail before the rest is skipped."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TypeVar

from fleetctl.errors import Exit, FleetError
from fleetctl.model.report import Outcome

_LOG = logging.getLogger(__name__)

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_parallel(
    work: Callable[[Item], Made], items: Iterable[Item], forks: int
) -> Iterator[tuple[Item, Made]]:
    """Results as they arrive. After Ctrl-C work that is under way is not waited for."""
    pool = ThreadPoolExecutor(forks)
    try:
        working = {pool.submit(work, item): item for item in items}
        for done in as_completed(working):
            yield working[done], done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def failure(target: str, error: Exception) -> FleetError:
    """Why the work for a target failed: a result, never a crash."""
    if isinstance(error, FleetError):
        _LOG.debug("%s failed", target, exc_info=error)
        return error
    _LOG.error("a bug, seen on %s", target, exc_info=error)
    what = f"this is a bug in fleetctl: {type(error).__name__}: {error}"
    return FleetError(what, hint="report it, with the log of this run", exit_code=Exit.BUG)


@dataclass(frozen=True, slots=True)
class Budget:
    """How many targets may fail before no other is begun."""

    allowed: int | None
    before: int
    """Failures before any change, unreachable targets included."""
    stop: threading.Event
    """Set when the user asked to stop."""
    failed: set[str] = field(default_factory=set)

    def count(self, outcome: Outcome) -> None:
        """A target that was skipped has not failed."""
        if outcome.state not in ("changed", "skipped"):
            self.failed.add(outcome.target)

    def halted(self) -> str | None:
        """Why no other target may be begun."""
        if self.stop.is_set():
            return "the run was stopped before it"
        failed = self.before + len(self.failed)
        if self.allowed is not None and failed > self.allowed:
            have = "node has" if failed == 1 else "nodes have"
            return f"{failed} {have} failed, and --max-fail allows {self.allowed}"
        return None
