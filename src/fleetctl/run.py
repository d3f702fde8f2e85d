"""The one path: gather facts of every target, plan, show, ask, carry out, and look again."""

import gc
import getpass
import importlib
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace

from fleetctl import restore
from fleetctl.execute import (
    Budget,
    RunContext,
    converge,
    failure,
    in_parallel,
    stopping_gracefully,
)
from fleetctl.gather import Access, all_questions, facts
from fleetctl.links import Ask, Connector, HostKeys, Link, LocalLink
from fleetctl.model.events import Ended, Gathered, Listener, Planned
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Fleet, Target
from fleetctl.model.options import Rollout, Timeouts
from fleetctl.model.plan import Failed, Level, Plan, Result
from fleetctl.model.report import Outcome, Report, State
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from fleetctl.shell import Question, script

_THREADS = 256
"""Targets that may be waited for at once; the connector limits how many are worked on."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to ask of each target, and how the answers become a plan."""

    questions: Callable[[Target], list[Question]]
    plan: Callable[[Target, Facts], Plan]
    all_or_nothing: bool = False
    """Whether one target that cannot be changed is a reason to change none."""


@dataclass(frozen=True, slots=True)
class Request:
    fleet: Fleet
    targets: tuple[Target, ...]
    forks: int
    access: Access
    ask_host_key: Ask | None
    confirm: Callable[[list[Plan]], bool]
    """Asks whether the plans that were shown should be carried out."""


def playbook_task(
    fleet: Fleet, name: str, only: frozenset[str], *, has_sudo_password: bool
) -> Task:
    entries = read_playbook(name, fleet.root)
    templates = Templates(fleet.root)

    def questions(target: Target) -> list[Question]:
        return [question for entry in entries for question in entry.questions(target)]

    def planned(target: Target, seen: Facts) -> Plan:
        return plan(
            fleet, target, seen, entries, templates, only, has_sudo_password=has_sudo_password
        )

    return Task(questions, planned, all_or_nothing=name == "provision")


def restore_task(
    planner: Callable[[Target, Facts], Plan], since: restore.Since | None = None
) -> Task:
    """Back to the state before that change, or before fleetctl first changed the node."""
    return Task(lambda target: restore.questions(target, since), planner)


def run(request: Request, task: Task, tell: Listener, rollout: Rollout | None = None) -> Report:
    """What differs on each target and, with a roll-out, what became of it."""
    started = time.monotonic()
    gc.freeze()  # what was imported until now stays
    gc.enable()
    with _Links(request) as links:
        results = _plan_all(request, task, links, tell, keep=rollout is not None)
        report = Report(results, time.monotonic() - started)
        tell(Planned(report))
        if rollout and (report.pending or report.blocked):
            asked = time.monotonic()
            able, outcomes = _confirmed(request, task, report)
            started += time.monotonic() - asked  # time at the question does not count
            if able:
                context = _context(request, task, links, tell, rollout, report, outcomes)
                report = _change(request, links, context, able, report, outcomes)
            else:
                report = replace(report, outcomes=outcomes)
    return replace(report, seconds=time.monotonic() - started)


@dataclass(slots=True)
class _Links:
    """Connections of a run. Those of targets with changes are kept until these are made."""

    request: Request
    connector: Connector = field(init=False)
    kept: dict[str, Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keys = host_keys_of(self.request.fleet, self.request.ask_host_key)
        self.connector = Connector(keys, self.request.access.timeout, self.request.forks)

    def connect(self, target: Target) -> Link:
        if target.link.is_local:
            return LocalLink()
        return self.connector.connect(target.name, target.link)

    def keep(self, target: Target, link: Link) -> None:
        """Idle connections are as many as `--forks`; for further targets a new one is opened."""
        if len(self.kept) < self.request.forks:
            link.pause()
            self.kept[target.name] = link
        else:
            link.close()

    def __enter__(self) -> "_Links":
        return self

    def __exit__(self, *_: object) -> None:
        for link in self.kept.values():
            link.close()
        self.connector.close()


@contextmanager
def connected(request: Request) -> Iterator[tuple[Link, Target]]:
    """To the one target of a request, to ask it something without a plan."""
    (target,) = request.targets
    with _Links(request) as links, closing(links.connect(target)) as link:
        yield link, target


def _plan_all(
    request: Request, task: Task, links: _Links, tell: Listener, *, keep: bool
) -> tuple[Result, ...]:
    """Each target is planned as soon as its facts are in."""

    def planned(target: Target) -> Result:
        threading.current_thread().name = target.name  # for the log
        try:
            link = links.connect(target)
            try:
                seen = facts(link, target, task.questions(target), request.access)
                result = task.plan(target, seen)
            except BaseException:
                link.close()
                raise
            if keep and result.changes:
                links.keep(target, link)
            else:
                link.close()
        except Exception as error:
            why = failure(target.name, error)
            return Failed(target.name, why.message, why.hint, why.exit_code)
        return result

    # loaded while the machines are waited for, since the first answer needs them
    for module in ("fleetctl.ollama.http", "jinja2.sandbox"):
        threading.Thread(target=importlib.import_module, args=(module,), daemon=True).start()
    results: dict[str, Result] = {}
    for target, result in in_parallel(planned, request.targets, max(request.forks, _THREADS)):
        results[target.name] = result
        tell(Gathered(result))
    return tuple(results[target.name] for target in request.targets)


def _confirmed(
    request: Request, task: Task, report: Report
) -> tuple[list[Plan], dict[str, Outcome]]:
    """The plans to carry out, and the outcome of the targets that are not touched."""
    outcomes = {plan.target: _blocked(plan) for plan in report.blocked}
    able = [plan for plan in report.pending if plan.target not in outcomes]
    failed = any(isinstance(result, Failed) for result in report.results)
    if task.all_or_nothing and (outcomes or failed):
        why = "another node is not ready, and no change is begun before all are"
        outcomes |= {plan.target: Outcome(plan.target, "skipped", (), why) for plan in able}
        return [], outcomes
    if able and not request.confirm(able):
        return [], {}
    return able, outcomes


def _context(
    request: Request,
    task: Task,
    links: _Links,
    tell: Listener,
    rollout: Rollout,
    report: Report,
    outcomes: dict[str, Outcome],
) -> RunContext:
    count = len(report.results)
    failed = sum(isinstance(result, Failed) for result in report.results) + len(outcomes)
    allowed = rollout.max_fail(count) if rollout.max_fail else None
    return RunContext(
        connect=links.connect,
        look=lambda link, target: facts(link, target, task.questions(target), request.access),
        replan=task.plan,
        access=request.access,
        tell=tell,
        owner=f"{_user()}@{platform.node()}",
        timeouts=Timeouts(healthy=rollout.health_timeout, stable=rollout.settle),
        gate=threading.Semaphore(max(1, rollout.serial(count))),
        budget=Budget(allowed, failed, threading.Event()),
        wait_idle=rollout.wait_idle,
    )


def _change(
    request: Request,
    links: _Links,
    context: RunContext,
    able: list[Plan],
    report: Report,
    outcomes: dict[str, Outcome],
) -> Report:
    targets = {target.name: target for target in request.targets}

    def change(plan: Plan) -> Outcome:
        threading.current_thread().name = plan.target
        link = links.kept.pop(plan.target, None)
        return converge(targets[plan.target], plan, link, context)

    with stopping_gracefully(context.budget.stop, context.tell) as received:
        for _, outcome in in_parallel(change, able, max(request.forks, _THREADS)):
            outcomes[outcome.target] = outcome
            context.tell(Ended(outcome))
    return replace(report, outcomes=outcomes, stopped=tuple(received))


def _blocked(plan: Plan) -> Outcome:
    """A target that is not touched, and why."""
    found = plan.worst(Level.OBSTACLE)
    state: State = "refused" if plan.worst(Level.EXPOSURE) else "failed"
    hints = "; ".join(dict.fromkeys(finding.hint for finding in found if finding.hint))
    why = "not changed because of the findings above"
    return Outcome(plan.target, state, (), why, hints or None)


def _user() -> str:
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "unknown"


def host_keys_of(fleet: Fleet, ask: Ask | None = None) -> HostKeys:
    return HostKeys(fleet.state / "known_hosts", ask)


def question_script(target: Target, task: Task) -> str:
    """The script that would be sent to a target to gather its facts."""
    return script(all_questions(target, task.questions(target)), "NONCE")
