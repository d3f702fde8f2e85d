"""Models, through Ollama's API: present when Ollama answers `success` and lists them."""

import threading
import time

from fleetctl.gather import client
from fleetctl.links import Link
from fleetctl.model.events import Listener, Progress
from fleetctl.model.fleet import Node
from fleetctl.model.plan import ModelChange, PullModel
from fleetctl.ollama import NoAnswer
from fleetctl.ollama import Progress as Pulled

_STALLED = 60.0
_TELL_EVERY = 0.2


class Stopped(Exception):
    """The user asked to stop; what has arrived is kept for the next run."""


def change_model(
    change: ModelChange, link: Link, node: Node, tell: Listener, stop: threading.Event
) -> None:
    """Raises NoAnswer if it could not be done, and Stopped."""
    if isinstance(change, PullModel):
        _pull(link, node, change.model, tell, stop)
    else:
        with client(link, node.listens, _STALLED) as api:
            api.delete(change.model)


def _pull(link: Link, node: Node, model: str, tell: Listener, stop: threading.Event) -> None:
    layers: dict[str, Pulled] = {}
    moved = told = time.monotonic()
    with client(link, node.listens, _STALLED) as api:
        for pulled in api.pull(model):
            now = time.monotonic()
            before = layers.get(pulled.digest)
            if before is None or before.completed != pulled.completed:
                moved = now
            if pulled.total:
                layers[pulled.digest] = pulled
            if stop.is_set():
                raise Stopped
            if now - moved > _STALLED:
                raise NoAnswer(f"no more of it arrived for {_STALLED:g} s")
            if now - told > _TELL_EVERY:
                told = now
                done = sum(each.completed for each in layers.values())
                total = sum(each.total for each in layers.values())
                tell(Progress(node.name, model, done, total, "B"))
    with client(link, node.listens, _STALLED) as api:
        if model.casefold() not in (name.casefold() for name in api.facts().models):
            raise NoAnswer("Ollama reported success, and does not list it")
