"""The one path from the command line: check, plan, apply."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli import options
from fleetctl.cli.inventory import load_fleet
from fleetctl.cli.options import Flags
from fleetctl.cli.project import make_state
from fleetctl.errors import Exit, FleetError
from fleetctl.model.rollout import Rollout
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.gather import Task
    from fleetctl.model.events import Event, Listener
    from fleetctl.model.fleet import Fleet
    from fleetctl.model.report import Report
    from fleetctl.run import Request


@click.command()
@click.option("--print-script", is_flag=True, help="Print what would be sent to a node, and stop.")
@options.looking_at_some
def check(flags: Flags, print_script: bool) -> Exit:
    """Say how the nodes differ from the inventory; change nothing."""
    from fleetctl.run import question_script

    if print_script:
        console.result(question_script(request_for(load_fleet(flags.file), flags)))
        return Exit.OK
    return follow("check", flags)


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@options.looking
def plan(flags: Flags, nodes: tuple[str, ...]) -> Exit:
    """Show what `apply` would do, on these nodes or on all."""
    return follow("plan", flags, nodes)


@click.command()
@click.option("--dry-run", is_flag=True, help="Stop after the plan.")
@options.changing
@options.looking_at_some
def apply(flags: Flags, how: Rollout, dry_run: bool) -> Exit:
    """Bring the nodes to what the inventory says.

    The plan is shown and asked about; afterwards nothing may differ any more.
    """
    return follow("apply", flags, how=None if dry_run else how)


def request_for(
    fleet: Fleet,
    flags: Flags,
    nodes: tuple[str, ...] = (),
    playbook: str = "apply",
    *,
    yes: bool = False,
) -> Request:
    """Whoever says --yes is asked nothing, and so accepts no host key either."""
    from fleetctl.inventory import did_you_mean, select
    from fleetctl.playbook import KINDS
    from fleetctl.run import Request

    for kind in set(flags.only) - set(KINDS):
        what = f"--only: there is no kind of step {kind!r}"
        raise FleetError(what, hint=did_you_mean(kind, KINDS), exit_code=Exit.USAGE)

    def confirm(count: int) -> bool:
        question = f"Make these changes on {count} node{'s' if count != 1 else ''}?"
        return yes or options.confirmed(question, somebody=flags.attended)

    return Request(
        fleet,
        select(fleet, ",".join(nodes) if nodes else flags.limit),
        playbook=playbook,
        only=frozenset(flags.only),
        forks=flags.forks,
        timeout=flags.timeout,
        ask=options.ask_about_host_key if flags.attended and not yes else None,
        confirm=confirm,
        all_or_nothing=playbook == "provision",
        password=options.password_source(flags.ask_sudo_password, flags.sudo_password_file),
    )


def follow(
    command: str,
    flags: Flags,
    nodes: tuple[str, ...] = (),
    how: Rollout | None = None,
    task: Task | None = None,
    fleet: Fleet | None = None,
) -> Exit:
    """Looks, shows the plan and, where `how` is given, asks and carries it out.

    `provision` has a playbook of its own, and begins nothing before all nodes are ready.
    """
    from fleetctl.run import run
    from fleetctl.ui import fleet as fleet_text
    from fleetctl.ui import plan as shown

    fleet = fleet or load_fleet(flags.file)
    playbook = "provision" if command == "provision" else "apply"
    request = request_for(fleet, flags, nodes, playbook, yes=how is not None and how.yes)
    log = _open_log(fleet.state, command)
    report = run(request, _listener(request, flags), how, task)
    if flags.as_json:
        console.document({**shown.document(report), "log": str(log) if log else None})
    elif not flags.json_events:
        for line in shown.outcomes(report):
            console.result(line)
        if command in ("apply", "provision") and how and report.exit_code == Exit.OK:
            for line in fleet_text.routing(fleet):
                console.result(line)
        console.result(shown.summary(report))
        if following := _next(command, report):
            console.talk(f"next: {options.again(following, flags, nodes)}")
    if log and report.exit_code not in (Exit.OK, Exit.DIFFERS):
        console.talk(f"log: {os.path.relpath(log)}")
    return report.exit_code


def _open_log(state: Path, command: str) -> Path | None:
    """A project that cannot be written to can still be looked at."""
    from fleetctl.ui.log import open_log

    try:
        make_state(state)
        return open_log(state, command)
    except OSError as error:
        logs = os.path.relpath(state / "logs")
        console.complain("warning", f"there is no log of this run: {logs}: {error.strerror}")
        return None


def _next(command: str, report: Report) -> str:
    if command in ("check", "plan") and report.pending:
        return "apply"
    return "check" if command == "provision" and report.exit_code == Exit.OK else ""


def _listener(request: Request, flags: Flags) -> Listener:
    """The log and, beside it, JSON or what people read. Events come from many threads."""
    from fleetctl.model.events import Planned
    from fleetctl.ui import events
    from fleetctl.ui import plan as shown
    from fleetctl.ui.log import log
    from fleetctl.ui.progress import Progress

    one_at_a_time = threading.Lock()
    progress = Progress(node.name for node in request.nodes if node.ssh)

    def tell(event: Event) -> None:
        log(event)
        with one_at_a_time:
            if flags.json_events:
                console.result(events.line(event))
                return
            progress.tell(event)
            if isinstance(event, Planned) and not flags.as_json:
                for line in shown.lines(event.report, diff=flags.diff):
                    console.result(line)
                console.flush()  # the plan is seen before it happens, whoever reads it

    return tell
