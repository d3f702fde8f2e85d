"""The one path: look at every node, plan, show, ask, carry out, and look again."""

from __future__ import annotations

import gc
import getpass
import importlib
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from fleetctl import way_back
from fleetctl.execute.budget import Budget
from fleetctl.execute.interrupt import patient
from fleetctl.execute.node import Means, carry_out
from fleetctl.execute.parallel import failure, in_parallel
from fleetctl.gather import Observer, Task, questions
from fleetctl.links import Ask, Connector, HostKeys, Link
from fleetctl.model.events import Ended, Listener, Looked, Planned
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Fleet, Node
from fleetctl.model.plan import Level, Lost, NodePlan, Result
from fleetctl.model.report import Outcome, Report, State
from fleetctl.model.rollout import Rollout
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from fleetctl.shell import script
from fleetctl.shell.transaction import Patience

_WAITING = 256
"""So many nodes may be waited for at once; the connector sees to it that fewer are worked on."""


@dataclass(frozen=True, slots=True)
class Request:
    fleet: Fleet
    nodes: tuple[Node, ...]
    playbook: str
    only: frozenset[str]
    forks: int
    timeout: float
    ask: Ask | None
    confirm: Callable[[int], bool]
    """Asks whether the plan that was shown shall be carried out, on so many nodes."""
    all_or_nothing: bool
    """Whether one node that cannot be changed is a reason to change none."""
    password: Callable[[], str] | None
    """Asks for the password of sudo, where one is to be used."""


def as_the_playbook_says(request: Request) -> Task:
    playbook = read_playbook(request.playbook, request.fleet.root)
    templates = Templates(request.fleet.root)

    def planner(node: Node, facts: Facts) -> NodePlan:
        elevates = request.password is not None
        return plan(
            request.fleet, node, facts, playbook, templates, request.only, elevates=elevates
        )

    return Task(questions(playbook), planner)


def going_back(planner: Callable[[Node, Facts], NodePlan], since: way_back.Since | None) -> Task:
    """To what was before that change, or before fleetctl came."""
    return Task([*questions(()), *way_back.parts(since)], planner)


def run(
    request: Request, tell: Listener, rollout: Rollout | None = None, task: Task | None = None
) -> Report:
    """What differs on each node and, with a roll-out, what became of it."""
    started = time.monotonic()
    gc.freeze()  # what was loaded until now stays
    gc.enable()
    observer = _observer(request, task or as_the_playbook_says(request))
    with closing(observer.connector):
        results = _look_at_all(request, observer, tell)
        report = Report(results, time.monotonic() - started)
        tell(Planned(report))
        if rollout and (report.pending or report.blocked):
            report = _change(request, observer, tell, rollout, report)
    return replace(report, seconds=time.monotonic() - started)


def _observer(request: Request, task: Task) -> Observer:
    return Observer(
        connector=Connector(
            host_keys_of(request.fleet, request.ask), request.timeout, request.forks
        ),
        task=task,
        timeout=request.timeout,
        password=request.password() if request.password else None,
    )


@contextmanager
def connected(request: Request) -> Iterator[tuple[Link, Observer]]:
    """To the one node of a request, to ask it something else; no playbook is needed for that."""
    (node,) = request.nodes
    observer = _observer(request, Task([]))
    with closing(observer.connector), closing(observer.connect(node)) as link:
        yield link, observer


def _look_at_all(request: Request, observer: Observer, tell: Listener) -> tuple[Result, ...]:
    """A node is planned for as soon as its facts are in."""

    def look_at(node: Node) -> Result:
        threading.current_thread().name = node.name  # for the log
        try:
            with closing(observer.connect(node)) as link:
                return observer.plan(link, node)
        except Exception as error:
            why = failure(node.name, error)
            return Lost(node.name, why.message, why.hint, why.exit_code)

    # What is needed first when a node has answered is loaded while all are waited for.
    threading.Thread(target=importlib.import_module, args=("jinja2.sandbox",), daemon=True).start()
    results: dict[str, Result] = {}
    managed = [node for node in request.nodes if node.ssh]
    for node, result in in_parallel(look_at, managed, max(request.forks, _WAITING)):
        results[node.name] = result
        tell(Looked(result))
    return tuple(results[node.name] for node in managed)


def _change(
    request: Request, observer: Observer, tell: Listener, rollout: Rollout, report: Report
) -> Report:
    outcomes = {plan.node: _in_the_way(plan) for plan in report.blocked}
    able = [plan for plan in report.pending if plan.node not in outcomes]
    lost = [result for result in report.results if isinstance(result, Lost)]
    if request.all_or_nothing and (outcomes or lost):
        why = "another node is not ready, and nothing is begun before all are"
        outcomes |= {plan.node: Outcome(plan.node, "skipped", (), why) for plan in able}
        able = []
    if not able:
        return replace(report, outcomes=outcomes)
    if not request.confirm(len(able)):
        return report
    count = len(report.results)
    stop = threading.Event()
    allowed = rollout.max_fail(count) if rollout.max_fail else None
    budget = Budget(allowed, len(lost) + len(outcomes), stop)
    means = Means(
        observer=observer,
        tell=tell,
        owner=f"{_user()}@{platform.node()}",
        patience=Patience(healthy=rollout.health_timeout, stable=rollout.settle),
        gate=threading.Semaphore(max(1, rollout.serial(count))),
        budget=budget,
        wait_idle=rollout.wait_idle,
    )

    def change(plan: NodePlan) -> Outcome:
        threading.current_thread().name = plan.node
        return carry_out(request.fleet.nodes[plan.node], plan, means)

    with patient(stop, tell) as heard:
        for _, outcome in in_parallel(change, able, max(request.forks, _WAITING)):
            outcomes[outcome.node] = outcome
            tell(Ended(outcome))
    return replace(report, outcomes=outcomes, stopped=tuple(heard))


def _in_the_way(plan: NodePlan) -> Outcome:
    """A node that is not touched, and why."""
    found = plan.worst(Level.OBSTACLE)
    state: State = "refused" if plan.worst(Level.EXPOSURE) else "failed"
    fixes = "; ".join(dict.fromkeys(finding.fix for finding in found if finding.fix))
    return Outcome(plan.node, state, (), "not touched, as something is in the way", fixes or None)


def _user() -> str:
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "somebody"


def host_keys_of(fleet: Fleet, ask: Ask | None = None) -> HostKeys:
    return HostKeys(fleet.state / "known_hosts", ask)


def question_script(request: Request) -> str:
    """What would be sent to a node to gather facts."""
    return script(as_the_playbook_says(request).parts, "NONCE")
