"""The events of a run for programs: one JSON object a line."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict

from fleetctl.model.events import Ended, Event, Looked, Planned
from fleetctl.ui import console, plan


class Events:
    """A listener; events come from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def tell(self, event: Event) -> None:
        with self._lock:
            console.result(json.dumps({"format": console.FORMAT, **_document(event)}))


def _document(event: Event) -> dict[str, object]:
    name = type(event).__name__.lower()
    match event:
        case Looked(result):
            return {"event": name, "node": result.node, **plan.result(result)}
        case Planned(report):
            return {"event": name, **plan.document(report)}
        case Ended(outcome):
            return {"event": name, "node": outcome.node, **plan.outcome(outcome)}
    return {"event": name, **asdict(event)}
