"""Models, through Ollama's API: there when Ollama says `success` and lists them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

from fleetctl.gather import client
from fleetctl.links import Link
from fleetctl.model.events import Did, Listener, Pulling
from fleetctl.model.fleet import Node
from fleetctl.model.plan import ModelChange, PullModel
from fleetctl.ollama import NoAnswer, Progress

_STALLED = 60.0
_TELL_EVERY = 0.2


class _Stopped(Exception):
    """The user wants it to end; what has arrived stays for the next time."""


def carry_out(
    changes: Iterable[ModelChange], link: Link, node: Node, tell: Listener, stop: threading.Event
) -> Iterator[tuple[ModelChange, str | None]]:
    """Each change, and why it could not be made, if so."""
    for change in changes:
        try:
            if isinstance(change, PullModel):
                _pull(link, node, change.model, tell, stop)
            else:
                with client(link, node.listens, _STALLED) as api:
                    api.delete(change.model)
        except NoAnswer as error:
            yield change, str(error)
        except _Stopped:
            yield change, "the run was stopped; what has arrived stays"
            return
        else:
            tell(Did(node.name, change.title))
            yield change, None


def _pull(link: Link, node: Node, model: str, tell: Listener, stop: threading.Event) -> None:
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
                raise _Stopped
            if now - moved > _STALLED:
                raise NoAnswer(f"nothing more of it came for {_STALLED:g} s")
            if now - told > _TELL_EVERY:
                told = now
                done = sum(each.completed for each in files.values())
                total = sum(each.total for each in files.values())
                tell(Pulling(node.name, model, done, total))
    with client(link, node.listens, _STALLED) as api:
        if model.casefold() not in (name.casefold() for name in api.facts().models):
            raise NoAnswer("Ollama said that it was there, and does not list it")
