"""Undoing changes of a node, and what it keeps about them: restore, remove, history, unlock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.model.options import Flags, Rollout
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.execute.node_state import HistoryEntry


@click.command()
@click.argument("node")
@click.option("--models", is_flag=True, help="Also delete the models that are mapped to it.")
@options.for_changes
@options.for_plan
def remove(flags: Flags, rollout: Rollout, node: str, models: bool) -> Exit:
    """Restore a node as it was before fleetctl first changed it."""
    from fleetctl.project import load_fleet, one_node
    from fleetctl.restore import plan_remove
    from fleetctl.run import restore_task
    from fleetctl.session import follow

    fleet = load_fleet(flags.file)
    one_node(fleet, node)
    mapped = [model for model in fleet.models.values() if node in model.nodes]
    names = frozenset(model.ollama_model for model in mapped if models)
    task = restore_task(partial(plan_remove, models=names))
    return follow("remove", flags, (node,), rollout, task=task, fleet=fleet)


@click.command()
@click.argument("node")
@click.option("--to", "change", metavar="N", help="Before this change of its history.")
@options.for_changes
@options.for_plan
def restore(flags: Flags, rollout: Rollout, node: str, change: str | None) -> Exit:
    """Put a node's files back to an earlier state.

    That is before its last change, or before the one that --to names.
    """
    from fleetctl.restore import Since, plan_restore
    from fleetctl.run import restore_task
    from fleetctl.session import follow

    entry = _change_of(node, _history(flags, node), change)
    task = restore_task(plan_restore, Since(entry.scope, int(entry.number)))
    return follow("restore", flags, (node,), rollout, task=task)


def _change_of(node: str, entries: list[HistoryEntry], wanted: str | None) -> HistoryEntry:
    """The change by that name, as `history` shows it, or the last one."""
    kept = {name: entry for name, entry in _named(entries) if name != "-"}
    if chosen := kept.get(wanted or next(reversed(kept), "")):
        return chosen
    what = f"{node} has no backup of a change {wanted}" if wanted else f"{node} has no backup"
    hint = f"it can go back before {', '.join(kept)}" if kept else f"fleetctl history {node}"
    raise FleetError(what, hint=hint)


def _named(entries: list[HistoryEntry]) -> Iterator[tuple[str, HistoryEntry]]:
    """Changes of the system and of the user are numbered separately."""
    both = len({entry.scope for entry in entries}) > 1
    for entry in entries:
        qualified = both and entry.number != "-"
        yield f"{entry.scope}-{entry.number}" if qualified else entry.number, entry


@click.command()
@click.argument("node")
@options.for_node
def history(flags: Flags, node: str) -> None:
    """Show the log of fleetctl's changes on a node."""
    entries = _history(flags, node)
    if flags.as_json:
        console.document({"node": node, "history": [asdict(entry) for entry in entries]})
    elif entries:
        for name, entry in _named(entries):
            about = (name, entry.time, entry.owner, entry.outcome)
            console.result("  ".join(map(console.printable, about)))
            for change in entry.changes.split("; "):
                console.result(f"   {console.printable(change)}")
    else:
        console.result(f"{node}: fleetctl has changed nothing there")


def _history(flags: Flags, node: str) -> list[HistoryEntry]:
    from fleetctl.execute import node_state
    from fleetctl.session import reach

    with reach(flags, node) as (link, target, access):
        return node_state.history(link, target, access)


@click.command()
@click.argument("node")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.for_node
def unlock(flags: Flags, node: str, yes: bool) -> Exit:
    """Remove the lock on a node.

    A dead run holds none. One that is alive notices that its lock is gone, and stops.
    """
    from fleetctl.execute import node_state
    from fleetctl.session import interactive, reach
    from fleetctl.ui import prompts

    with reach(flags, node, yes=yes) as (link, target, access):
        locks = node_state.locks(link, target, access)
        owners = ", ".join(lock.owner for lock in locks)
        question = f"{node} is locked by {owners}. Remove the lock?"
        if locks and not (yes or prompts.confirm(question, interactive=interactive(flags))):
            return Exit.DIFFERS
        for lock in locks:
            node_state.unlock(link, target, access, lock)
    if flags.as_json:
        console.document({"node": node, "unlocked": [lock.owner for lock in locks]})
    else:
        console.result(f"{node}: " + (f"unlocked, was held by {owners}" if locks else "not locked"))
    return Exit.OK
