"""Whether Ollama is well after a restart: it answers, stays, and uses what it was given."""

from __future__ import annotations

import time
from dataclasses import replace

from fleetctl.errors import FleetError
from fleetctl.gather import Observer
from fleetctl.links import Link
from fleetctl.model.facts import Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Level, NodePlan, Restart
from fleetctl.shell.transaction import Patience

_POLL = 0.3
_LEAST = 5.0
"""Seconds for one look, also when no more are left."""
_CRASHES = 2
"""Starts after which nobody needs to wait for another."""


def illness(observer: Observer, link: Link, node: Node, patience: Patience) -> str | None:
    """Why the restarted server must not stay as it is; None when it is well."""
    try:
        first = answering(observer, link, node, patience.healthy)
        if isinstance(first, str):
            return first
        time.sleep(patience.stable)
        plan = observer.plan(link, node)
    except FleetError as error:
        return error.message
    if _start(first) != _start(plan) or isinstance(plan.facts.api, Unknown):
        return f"Ollama did not stay up for {patience.stable:g} s"
    restarts = [change for _, change in plan.changes if isinstance(change, Restart)]
    still = [f"after the restart {restart.reason}" for restart in restarts]
    found = [finding.text for finding in plan.worst(Level.FAULT)] or still
    return "; ".join(found) or None


def answering(
    observer: Observer, link: Link, node: Node, seconds: float, *, whoever: bool = False
) -> NodePlan | str:
    """What is there as soon as Ollama answers, or why it does not; `whoever` may run it."""
    deadline = time.monotonic() + seconds
    while True:
        # a server that takes connections and says nothing must not cost more than what is left
        left = max(deadline - time.monotonic(), _LEAST)
        plan = replace(observer, timeout=min(observer.timeout, left)).plan(link, node)
        api, service = plan.facts.api, plan.service
        if whoever and not isinstance(api, Unknown):
            return plan
        if service:
            if service.pid and not isinstance(api, Unknown):
                return plan
            if service.restarts >= _CRASHES:
                return f"Ollama crashed {service.restarts + 1} times"
        if time.monotonic() > deadline:
            why = api.why if isinstance(api, Unknown) else "its service is not running"
            return f"Ollama was not up after {seconds:g} s: {why}"
        time.sleep(_POLL)


def _start(plan: NodePlan) -> tuple[str, int | None] | None:
    """What is the same for as long as the server has not been started again."""
    return (plan.service.run, plan.service.pid) if plan.service else None
