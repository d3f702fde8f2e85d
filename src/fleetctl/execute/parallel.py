"""The same work for many nodes at a time, of which some will fail."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from fleetctl.errors import Exit, FleetError

_LOG = logging.getLogger(__name__)

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_parallel(
    work: Callable[[Item], Made], items: Iterable[Item], forks: int
) -> Iterator[tuple[Item, Made]]:
    """Results as they come. The threads are daemons: nobody waits for them after Ctrl-C."""
    todo: queue.SimpleQueue[Item] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Item, Made | BaseException]] = queue.SimpleQueue()
    for item in items:
        todo.put(item)
    count = todo.qsize()

    def worker() -> None:
        while True:
            try:
                item = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((item, work(item)))
            except BaseException as error:
                done.put((item, error))

    for _ in range(min(count, forks)):
        threading.Thread(target=worker, daemon=True).start()
    for _ in range(count):
        item, made = done.get()
        if isinstance(made, BaseException):
            raise made
        yield item, made


def failure(node: str, error: Exception) -> FleetError:
    """Why the work for a node has failed: a result, never a crash."""
    if isinstance(error, FleetError):
        _LOG.debug("%s failed", node, exc_info=error)
        return error
    _LOG.error("a bug, seen on %s", node, exc_info=error)
    what = f"this is a bug in fleetctl: {type(error).__name__}: {error}"
    return FleetError(what, hint="report it, with the log of this run", exit_code=Exit.BUG)
