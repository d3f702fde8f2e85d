"""Whether a restarted service is healthy: it answers, stays up, and uses its values."""

import time
from collections.abc import Sequence
from dataclasses import replace

from fleetctl.errors import FleetError
from fleetctl.execute.context import RunContext
from fleetctl.gather import service_facts
from fleetctl.links import Link
from fleetctl.model.facts import Api, Facts, Service, ServiceSpec, Unknown
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Level, Plan, Restart

_POLL = 0.3
_LEAST = 5.0
"""Seconds for one question, also when fewer are left."""
_CRASHES = 2
"""Restarts by the service manager after which waiting longer is pointless."""


class Unhealthy(Exception):
    """The service must not stay as it is; the text says why."""


def healthy(link: Link, target: Target, service: Service, context: RunContext) -> Facts:
    """The facts of the target once its restarted service has proven healthy."""
    timeouts = context.timeouts
    try:
        first = wait_until_up(link, target, [service.spec], context)
        time.sleep(timeouts.stable)
        facts = context.look(link, target)
    except FleetError as error:
        raise Unhealthy(error.message) from error
    plan = context.replan(target, facts)
    if isinstance(facts.api, Unknown) or _start(plan.service) != _start(first):
        raise Unhealthy(f"{service.spec.title} did not stay up for {timeouts.stable:g} s")
    if problem := _problem(plan):
        raise Unhealthy(problem)
    return facts


def _problem(plan: Plan) -> str:
    restarts = [change for _, change in plan.changes if isinstance(change, Restart)]
    still = [f"after the restart {restart.reason}" for restart in restarts]
    found = [finding.text for finding in plan.worst(Level.FAULT)]
    return "; ".join(found or still)


def wait_until_up(
    link: Link,
    target: Target,
    specs: Sequence[ServiceSpec],
    context: RunContext,
    *,
    any_server: bool = False,
) -> Service | None:
    """The service of these that runs and answers; raises Unhealthy.

    With `any_server` the answer is enough, however the server was started.
    """
    seconds = context.timeouts.healthy
    title = specs[0].title
    deadline = time.monotonic() + seconds
    while True:
        # a server that accepts connections and is silent must not cost more than what is left
        left = max(deadline - time.monotonic(), _LEAST)
        access = replace(context.access, timeout=min(context.access.timeout, left))
        found, api = service_facts(link, target, specs, access)
        service = max(found, key=lambda each: (each.active, each.restarts), default=None)
        if isinstance(api, Api) and (any_server or (service and service.pid)):
            return service
        if service and service.restarts >= _CRASHES:
            raise Unhealthy(f"{title} crashed {service.restarts + 1} times")
        if time.monotonic() > deadline:
            why = api.why if isinstance(api, Unknown) else "its service is not running"
            raise Unhealthy(f"{title} was not up after {seconds:g} s: {why}")
        time.sleep(_POLL)


def _start(service: Service | None) -> tuple[str, int | None] | None:
    """The same for as long as the service has not been started again."""
    return (service.run, service.pid) if service else None
