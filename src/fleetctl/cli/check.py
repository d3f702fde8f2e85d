"""Looking at the fleet: check and plan."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.cli.inventory import load_fleet
from fleetctl.errors import Exit
from fleetctl.ui import console


@click.command()
@options.inventory_file
@options.limit
@click.option("--only", multiple=True, metavar="KIND", help="Only steps of this kind.")
@click.option("--diff/--no-diff", default=True, help="Show what files would change to.")
@click.option("--forks", default=32, show_default=True, help="Nodes to look at in parallel.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for a node.")
@options.sudo_password
@click.option("--print-script", is_flag=True, help="Print what would be sent to a node, and stop.")
@options.output
def check(
    file: Path | None,
    limit: str | None,
    only: tuple[str, ...],
    diff: bool,
    forks: int,
    timeout: float,
    ask_sudo_password: bool,
    sudo_password_file: Path | None,
    print_script: bool,
    as_json: bool,
) -> Exit:
    """Say how the nodes differ from the inventory; change nothing."""
    from fleetctl.inventory.select import select
    from fleetctl.run import Request, look, question_script
    from fleetctl.ui import plan
    from fleetctl.ui.log import open_log
    from fleetctl.ui.progress import Progress

    fleet, _ = load_fleet(file)
    request = Request(
        fleet,
        select(fleet, limit).nodes,
        only=frozenset(only),
        forks=forks,
        timeout=timeout,
        ask=options.ask_about_host_key if sys.stdin.isatty() and not as_json else None,
        password=options.password_source(ask_sudo_password, sudo_password_file),
    )
    if print_script:
        console.result(question_script(request))
        return Exit.OK
    log = open_log(fleet.state, "check")
    progress = Progress(node.name for node in request.nodes if node.ssh)
    report = look(request, progress.tell)
    if as_json:
        console.document({**plan.document(report), "log": str(log)})
    else:
        for line in plan.lines(report, diff=diff):
            console.result(line)
        console.result(plan.summary(report))
    if report.exit_code not in (Exit.OK, Exit.DIFFERS):
        console.talk(f"log: {log}")
    return report.exit_code
