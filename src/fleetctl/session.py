"""One command from start to end: load the fleet, open the log, run, show, exit code."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetctl.errors import Exit, FleetError
from fleetctl.gather import Access
from fleetctl.inventory import did_you_mean, select
from fleetctl.links import Link
from fleetctl.model.fleet import CONTROLLER, Fleet, Target
from fleetctl.model.options import Flags, Rollout
from fleetctl.model.plan import Plan
from fleetctl.model.report import Report
from fleetctl.project import load_fleet, make_state, one_node
from fleetctl.run import Request, Task, connected, playbook_task, question_script, run
from fleetctl.steps import kinds
from fleetctl.targets import targets_of
from fleetctl.ui import RunListener, console, documents, open_log, prompts
from fleetctl.ui import fleet as fleet_lines
from fleetctl.ui import plan as plan_lines


def interactive(flags: Flags) -> bool:
    return prompts.at_terminal() and not flags.as_json and not flags.json_events


def follow(
    command: str,
    flags: Flags,
    nodes: tuple[str, ...] = (),
    rollout: Rollout | None = None,
    task: Task | None = None,
    fleet: Fleet | None = None,
) -> Exit:
    """Shows the plan and, with a roll-out, asks and carries it out.

    `provision` has a playbook of its own, and begins nothing before all nodes are ready.
    """
    fleet = fleet or load_fleet(flags.file)
    targets = _targets(fleet, ",".join(nodes) if nodes else flags.limit)
    task = task or _playbook_task(fleet, flags, command)
    log = _open_log(fleet.state, command)
    with RunListener(
        [target.name for target in targets],
        as_json=flags.as_json,
        json_events=flags.json_events,
        diff=flags.diff,
    ) as tell:
        request = _request(fleet, targets, flags, tell, yes=rollout is not None and rollout.yes)
        report = run(request, task, tell, rollout)
    if flags.as_json:
        console.document({**documents.of_report(report), "log": str(log) if log else None})
    elif not flags.json_events:
        changing = command in ("apply", "provision") and rollout is not None
        _show(report, fleet if changing and report.exit_code == Exit.OK else None)
        if following := _next(command, report):
            console.talk(f"next: {_repeated(following, flags, nodes)}")
    if log and report.exit_code not in (Exit.OK, Exit.DIFFERS):
        console.talk(f"log: {os.path.relpath(log)}")
    return report.exit_code


def printed_script(flags: Flags) -> str:
    """The script that `check` would send to the first node."""
    fleet = load_fleet(flags.file)
    targets = _targets(fleet, flags.limit)
    return question_script(targets[0], _playbook_task(fleet, flags, "check"))


@contextmanager
def reach(flags: Flags, name: str, *, yes: bool = False) -> Iterator[tuple[Link, Target, Access]]:
    """An open connection to one node, to ask it something without a plan."""
    fleet = load_fleet(flags.file)
    targets = targets_of(fleet, [one_node(fleet, name)], controller=False)
    request = _request(fleet, targets, flags, None, yes=yes)
    with connected(request) as (link, target):
        yield link, target, request.access


def _targets(fleet: Fleet, limit: str | None) -> tuple[Target, ...]:
    """`--limit` leaves the controller out unless it names it."""
    named = limit is None or CONTROLLER in (pattern.strip() for pattern in limit.split(","))
    return targets_of(fleet, select(fleet, limit), controller=named)


def _playbook_task(fleet: Fleet, flags: Flags, command: str) -> Task:
    known = kinds()
    for kind in set(flags.only) - set(known):
        what = f"--only: there is no kind of step {kind!r}"
        raise FleetError(what, hint=did_you_mean(kind, known), exit_code=Exit.USAGE)
    playbook = "provision" if command == "provision" else "apply"
    has_password = flags.ask_sudo_password or flags.sudo_password_file is not None
    return playbook_task(fleet, playbook, frozenset(flags.only), has_sudo_password=has_password)


def _request(
    fleet: Fleet,
    targets: tuple[Target, ...],
    flags: Flags,
    listener: RunListener | None,
    *,
    yes: bool,
) -> Request:
    """With --yes nothing is asked, and so no host key is accepted either."""

    def confirm(plans: list[Plan]) -> bool:
        question = f"Apply these changes to {_counted(plans)}?"
        return yes or prompts.confirm(question, interactive=interactive(flags))

    ask = prompts.ask_host_key if interactive(flags) and not yes else None
    source = prompts.password_source(flags.ask_sudo_password, flags.sudo_password_file)
    if source and listener:
        source = listener.pausing(source)
    return Request(
        fleet,
        targets,
        forks=flags.forks,
        access=Access(flags.timeout, source() if source else None),
        ask_host_key=listener.pausing(ask) if listener and ask else ask,
        confirm=listener.pausing(confirm) if listener else confirm,
    )


def _counted(plans: list[Plan]) -> str:
    nodes = sum(plan.target != CONTROLLER for plan in plans)
    words = [f"{nodes} node{'s' if nodes != 1 else ''}"] if nodes else []
    return " and ".join([*words, *(["the controller"] if nodes < len(plans) else [])])


def _open_log(state: Path, command: str) -> Path | None:
    """A project that cannot be written to can still be checked."""
    try:
        make_state(state)
        return open_log(state, command)
    except OSError as error:
        logs = os.path.relpath(state / "logs")
        console.complain("warning", f"there is no log of this run: {logs}: {error.strerror}")
        return None


def _show(report: Report, converged: Fleet | None) -> None:
    for line in plan_lines.outcomes(report):
        console.result(line)
    if converged:
        for line in fleet_lines.routing(converged):
            console.result(line)
    console.result(plan_lines.summary(report))


def _next(command: str, report: Report) -> str:
    if command in ("check", "plan") and report.pending:
        return "apply"
    return "check" if command == "provision" and report.exit_code == Exit.OK else ""


def _repeated(command: str, flags: Flags, nodes: tuple[str, ...]) -> str:
    """Another command for the same inventory, nodes and steps, as they were given in this one."""
    words = ["fleetctl", command]
    if flags.file:
        words += ["-i", str(flags.file)]
    if limit := ",".join(nodes) or flags.limit:
        words += ["--limit", limit]
    for kind in flags.only:
        words += ["--only", kind]
    return shlex.join(words)
