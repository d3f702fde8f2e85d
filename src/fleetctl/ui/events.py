"""The events of a run for programs: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import asdict

from fleetctl.model.events import Ended, Event, Looked, Planned
from fleetctl.ui import console, plan


def line(event: Event) -> str:
    return json.dumps({"format": console.FORMAT, **_document(event)})


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
