"""Models, through Ollama's API: there when Ollama says `success` and lists them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fleetctl.gather import client, listens
from fleetctl.links import Link
from fleetctl.model.fleet import Node
from fleetctl.ollama.api import NoAnswer

_STALLED = 60.0
_TELL_EVERY = 0.2


Tell = Callable[[int, int], None]
"""Hears how many bytes have come, and of how many."""


class Stopped(Exception):
    """The user wants it to end; what has arrived stays for the next time."""


def pull(
    link: Link,
    node: Node,
    model: str,
    tell: Tell,
    stop: threading.Event,
) -> None:
    completed: dict[str, int] = {}
    totals: dict[str, int] = {}
    moved = told = time.monotonic()
    with client(link, listens(node), _STALLED) as api:
        for progress in api.pull(model):
            now = time.monotonic()
            if not progress.total or completed.get(progress.digest) != progress.completed:
                moved = now
            if progress.total:
                completed[progress.digest] = progress.completed
                totals[progress.digest] = progress.total
            if stop.is_set():
                raise Stopped
            if now - moved > _STALLED:
                raise NoAnswer(f"nothing more of it came for {_STALLED:g} s")
            if now - told > _TELL_EVERY:
                told = now
                tell(sum(completed.values()), sum(totals.values()))
    with client(link, listens(node), _STALLED) as api:
        if model.casefold() not in (name.casefold() for name in api.facts().models):
            raise NoAnswer("Ollama said that it was there, and does not list it")


def delete(link: Link, node: Node, model: str) -> None:
    with client(link, listens(node), _STALLED) as api:
        api.delete(model)
