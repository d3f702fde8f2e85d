"""The one path from the command line: check, plan, apply."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetctl.cli import options
from fleetctl.cli.inventory import load_fleet
from fleetctl.errors import Exit
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.model.events import Event, Listener
    from fleetctl.model.fleet import Fleet
    from fleetctl.model.report import Report
    from fleetctl.run import Request, Rollout, Task


@dataclass(frozen=True, slots=True)
class Flags:
    """What all commands that look at nodes can be told."""

    file: Path | None
    timeout: float
    ask_sudo_password: bool
    sudo_password_file: Path | None
    as_json: bool
    only: tuple[str, ...] = ()
    diff: bool = True
    forks: int = 32
    json_events: bool = False
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Changing:
    """What all commands that change nodes can be told."""

    yes: bool
    serial: Callable[[int], int]
    max_fail: Callable[[int], int] | None
    health_timeout: float
    settle: float
    wait_idle: bool


_REACHING: list[Callable[[Any], Any]] = [
    options.inventory_file,
    click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for a node."),
    options.sudo_password,
    options.output,
]
_SHOWING: list[Callable[[Any], Any]] = [
    *_REACHING,
    click.option("--diff/--no-diff", default=True, help="Show what files would change to."),
    click.option("--json-events", is_flag=True, help="Print events, a JSON object a line."),
]
_LOOKING: list[Callable[[Any], Any]] = [
    click.option("--only", multiple=True, metavar="KIND", help="Only steps of this kind."),
    click.option("--forks", default=32, show_default=True, help="Nodes to see to in parallel."),
    *_SHOWING,
]
_CHANGING: list[Callable[[Any], Any]] = [
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--serial",
        type=options.share,
        metavar="N|N%",
        default="10%",
        show_default=True,
        help="Nodes that may be down at once.",
    ),
    click.option(
        "--max-fail",
        type=options.share,
        metavar="N|N%",
        help="Leave the rest alone when more nodes have failed.",
    ),
    click.option(
        "--health-timeout",
        default=60.0,
        show_default=True,
        help="Seconds for a restarted Ollama to be well.",
    ),
    click.option(
        "--settle",
        default=3.0,
        show_default=True,
        help="Seconds for which it must then stay up.",
    ),
    click.option("--wait-idle", is_flag=True, help="Restart only when no client is connected."),
]


Command = Callable[..., Any]


def _gathered(
    kind: type[Flags | Changing], decorators: list[Callable[[Any], Any]], name: str
) -> Callable[[Command], Command]:
    """Options that reach the command as one value."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathering(**values: Any) -> Any:
            names = [field.name for field in fields(kind) if field.name in values]
            return command(**{name: kind(**{each: values.pop(each) for each in names})}, **values)

        return functools.reduce(lambda made, add: add(made), reversed(decorators), gathering)

    return decorate


reaching = _gathered(Flags, _REACHING, "flags")
showing = _gathered(Flags, _SHOWING, "flags")
looking = _gathered(Flags, _LOOKING, "flags")
looking_at_some = _gathered(Flags, [options.limit, *_LOOKING], "flags")
changing = _gathered(Changing, _CHANGING, "how")


@click.command()
@click.option("--print-script", is_flag=True, help="Print what would be sent to a node, and stop.")
@looking_at_some
def check(flags: Flags, print_script: bool) -> Exit:
    """Say how the nodes differ from the inventory; change nothing."""
    from fleetctl.run import question_script

    if print_script:
        console.result(question_script(request_for(load_fleet(flags.file)[0], flags)))
        return Exit.OK
    return follow("check", flags)


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@looking
def plan(flags: Flags, nodes: tuple[str, ...]) -> Exit:
    """Show what `apply` would do, on these nodes or on all."""
    return follow("plan", flags, nodes)


@click.command()
@click.option("--dry-run", is_flag=True, help="Stop after the plan.")
@changing
@looking_at_some
def apply(flags: Flags, how: Changing, dry_run: bool) -> Exit:
    """Bring the nodes to what the inventory says: plan, ask, change, verify."""
    return follow("apply", flags, how=None if dry_run else how)


def request_for(
    fleet: Fleet, flags: Flags, nodes: tuple[str, ...] = (), playbook: str = "apply"
) -> Request:
    from fleetctl.inventory.select import select
    from fleetctl.run import Request

    return Request(
        fleet,
        select(fleet, ",".join(nodes) or flags.limit).nodes,
        playbook=playbook,
        only=frozenset(flags.only),
        forks=flags.forks,
        timeout=flags.timeout,
        ask=options.ask_about_host_key if is_answered(flags) else None,
        password=options.password_source(flags.ask_sudo_password, flags.sudo_password_file),
    )


def is_answered(flags: Flags) -> bool:
    """Whether somebody sits at the terminal."""
    return sys.stdin.isatty() and not flags.as_json and not flags.json_events


def follow(
    command: str,
    flags: Flags,
    nodes: tuple[str, ...] = (),
    how: Changing | None = None,
    playbook: str = "apply",
    task: Task | None = None,
    fleet: Fleet | None = None,
    all_or_nothing: bool = False,
) -> Exit:
    """Looks, shows the plan and, where `how` is given, asks and carries it out."""
    from fleetctl.run import run
    from fleetctl.ui import fleet as fleet_text
    from fleetctl.ui import plan as shown
    from fleetctl.ui.log import open_log

    fleet = fleet or load_fleet(flags.file)[0]
    request = request_for(fleet, flags, nodes, playbook)
    log = open_log(fleet.state, command)
    rollout = _rollout(flags, how, all_or_nothing) if how else None
    report = run(request, _listener(request, flags), rollout, task)
    if flags.as_json:
        console.document({**shown.document(report), "log": str(log)})
    elif not flags.json_events:
        for line in shown.outcomes(report):
            console.result(line)
        if command in ("apply", "provision") and how and report.exit_code == Exit.OK:
            for line in fleet_text.routing(fleet):
                console.result(line)
        console.result(shown.summary(report))
        if line := _next(command, report):
            console.talk(f"next: {line}")
    if report.exit_code not in (Exit.OK, Exit.DIFFERS):
        console.talk(f"log: {log}")
    return report.exit_code


def _next(command: str, report: Report) -> str:
    if command in ("check", "plan") and report.pending:
        return "fleetctl apply"
    return "fleetctl check" if command == "provision" and report.exit_code == Exit.OK else ""


def _listener(request: Request, flags: Flags) -> Listener:
    """The log and, beside it, JSON or what people read."""
    from fleetctl.model.events import Planned
    from fleetctl.ui import plan as shown
    from fleetctl.ui.events import Events
    from fleetctl.ui.log import log
    from fleetctl.ui.progress import Progress

    events = Events()
    progress = Progress(node.name for node in request.nodes if node.ssh)

    def tell(event: Event) -> None:
        log(event)
        if flags.json_events:
            events.tell(event)
            return
        progress.tell(event)
        if isinstance(event, Planned) and not flags.as_json:
            for line in shown.lines(event.report, diff=flags.diff):
                console.result(line)
            sys.stdout.flush()  # the plan is seen before it happens, whoever reads it

    return tell


def _rollout(flags: Flags, how: Changing, all_or_nothing: bool) -> Rollout:
    from fleetctl.run import Rollout
    from fleetctl.shell.transaction import Patience

    def confirm(report: Report) -> bool:
        if how.yes:
            return True
        count = len(report.pending)
        question = f"Make these changes on {count} node{'s' if count != 1 else ''}?"
        return options.confirmed(question, somebody=is_answered(flags))

    return Rollout(
        confirm,
        serial=how.serial,
        max_fail=how.max_fail,
        patience=Patience(healthy=how.health_timeout, stable=how.settle),
        wait_idle=how.wait_idle,
        all_or_nothing=all_or_nothing,
    )
