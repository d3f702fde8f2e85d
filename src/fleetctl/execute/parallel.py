"""The same work for many nodes at a time, of which some will fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from fleetctl.errors import Exit, FleetError

_LOG = logging.getLogger(__name__)

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_parallel(
    work: Callable[[Item], Made], items: Iterable[Item], forks: int
) -> Iterator[tuple[Item, Made]]:
    """Results as they come. After Ctrl-C nobody waits for those that are still at work."""
    pool = ThreadPoolExecutor(forks)
    try:
        working = {pool.submit(work, item): item for item in items}
        for done in as_completed(working):
            yield working[done], done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def failure(node: str, error: Exception) -> FleetError:
    """Why the work for a node has failed: a result, never a crash."""
    if isinstance(error, FleetError):
        _LOG.debug("%s failed", node, exc_info=error)
        return error
    _LOG.error("a bug, seen on %s", node, exc_info=error)
    what = f"this is a bug in fleetctl: {type(error).__name__}: {error}"
    return FleetError(what, hint="report it, with the log of this run", exit_code=Exit.BUG)
