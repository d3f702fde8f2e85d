"""Models, through Ollama's API: there when Ollama says `success` and lists them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fleetctl.gather import client
from fleetctl.links import Link
from fleetctl.model.fleet import Node
from fleetctl.ollama.api import NoAnswer, Progress

_STALLED = 60.0
_TELL_EVERY = 0.2


Tell = Callable[[int, int], None]
"""Hears how many bytes have come, and of how many."""


class Stopped(Exception):
    """The user wants it to end; what has arrived stays for the next time."""


def pull(link: Link, node: Node, model: str, tell: Tell, stop: threading.Event) -> None:
    files: dict[str, Progress] = {}
    moved = told = time.monotonic()
    with client(link, node.listens, _STALLED) as api:
        for progress in api.pull(model):
            now = time.monotonic()
            before = files.get(progress.digest)
            if before is None or before.completed != progress.completed:
                moved = now
            if progress.total:
                files[progress.digest] = progress
            if stop.is_set():
                raise Stopped
            if now - moved > _STALLED:
                raise NoAnswer(f"nothing more of it came for {_STALLED:g} s")
            if now - told > _TELL_EVERY:
                told = now
                counts = [(each.completed, each.total) for each in files.values()]
                tell(sum(done for done, _ in counts), sum(total for _, total in counts))
    with client(link, node.listens, _STALLED) as api:
        if model.casefold() not in (name.casefold() for name in api.facts().models):
            raise NoAnswer("Ollama said that it was there, and does not list it")


def delete(link: Link, node: Node, model: str) -> None:
    with client(link, node.listens, _STALLED) as api:
        api.delete(model)
