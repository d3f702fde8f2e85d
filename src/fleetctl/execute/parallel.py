"""The same work for many nodes at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

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
