"""A machine joins the fleet, and leaves it: provision, remove, restore, history, unlock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli import options
from fleetctl.cli.check import follow, request_for
from fleetctl.cli.inventory import load_fleet, one_node
from fleetctl.cli.options import Flags
from fleetctl.errors import Exit, FleetError
from fleetctl.model.rollout import Rollout
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.execute.keeping import Entry
    from fleetctl.model.fleet import Fleet


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--add", "target", metavar="[USER@]HOST[:PORT]", help="Put it into the inventory.")
@click.option("--as", "name", help="Its name there.  [default: of the host]")
@click.option("--group", help="Its group there.")
@click.option("--fingerprint", metavar="SHA256:…", help="That its host key must have.")
@options.login_password
@options.changing
@options.looking
def provision(
    flags: Flags,
    how: Rollout,
    nodes: tuple[str, ...],
    target: str | None,
    ask_password: bool,
    password_file: Path | None,
    **new: str | None,
) -> Exit:
    """Make new machines nodes of the fleet.

    All that could fail is looked for on every machine before anything is changed on one.
    """
    if target is not None:
        from fleetctl.cli.add import add

        if nodes:
            raise click.UsageError("Name nodes, or --add one; not both.")
        password = options.password_source(ask_password, password_file, f"Password for {target}")
        file, called = add(
            flags.file, target, **new, password=password, yes=how.yes, timeout=flags.timeout
        )
        flags, nodes = replace(flags, file=file), (called,)
    elif ask_password or password_file or any(new.values()):
        raise click.UsageError("--as, --group, --fingerprint and --ask-password go with --add.")
    fleet = load_fleet(flags.file)
    for each in nodes:
        if each not in fleet.nodes:
            hint = f"fleetctl provision --add {each}"
            raise FleetError(f"{each} is not in {fleet.file}", hint=hint, exit_code=Exit.USAGE)
    return follow("provision", flags, nodes, how, fleet=fleet)


@click.command()
@click.argument("node")
@click.option("--models", is_flag=True, help="Also delete the models that are mapped to it.")
@options.changing
@options.showing
def remove(flags: Flags, how: Rollout, node: str, models: bool) -> Exit:
    """Undo provision: the node as it was before fleetctl came."""
    from functools import partial

    from fleetctl import way_back
    from fleetctl.run import going_back

    fleet = load_fleet(flags.file)
    one_node(fleet, node)
    mapped = [model for model in fleet.models.values() if node in model.nodes]
    names = frozenset(model.ollama_model for model in mapped if models)
    planner = partial(way_back.plan_remove, models=names)
    return follow("remove", flags, (node,), how, task=going_back(planner, None), fleet=fleet)


@click.command()
@click.argument("node")
@click.option("--to", "change", metavar="N", help="Before this change of its history.")
@options.changing
@options.showing
def restore(flags: Flags, how: Rollout, node: str, change: str | None) -> Exit:
    """Put a node's files back to what they were.

    That is before its last change, or before the one that --to names.
    """
    from fleetctl import way_back
    from fleetctl.run import going_back

    fleet = load_fleet(flags.file)
    one_node(fleet, node)
    since = _change_of(node, _history(fleet, flags, node), change)
    task = going_back(way_back.plan_restore, way_back.Since(since.scope, int(since.number)))
    return follow("restore", flags, (node,), how, task=task, fleet=fleet)


def _change_of(node: str, entries: list[Entry], wanted: str | None) -> Entry:
    """The change by that name, as `history` shows it, or the last one."""
    kept = {name: entry for name, entry in _named(entries) if name != "-"}
    if chosen := kept.get(wanted or next(reversed(kept), "")):
        return chosen
    what = f"{node} keeps nothing of a change {wanted}" if wanted else f"{node} has no backup"
    hint = f"it could go back before {', '.join(kept)}" if kept else f"fleetctl history {node}"
    raise FleetError(what, hint=hint)


def _named(entries: list[Entry]) -> Iterator[tuple[str, Entry]]:
    """Changes of the system and those of the user are counted apart."""
    both = len({entry.scope for entry in entries}) > 1
    for entry in entries:
        apart = both and entry.number != "-"
        yield f"{entry.scope}-{entry.number}" if apart else entry.number, entry


@click.command()
@click.argument("node")
@options.reaching
def history(flags: Flags, node: str) -> None:
    """Show what fleetctl has done on a node, by its own log there."""
    entries = _history(load_fleet(flags.file), flags, node)
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


@click.command()
@click.argument("node")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.reaching
def unlock(flags: Flags, node: str, yes: bool) -> Exit:
    """Take away the lock on a node.

    A run that is dead holds none. One that is alive notices that it has lost it, and stops.
    """
    from fleetctl.execute import keeping
    from fleetctl.run import connected

    fleet = load_fleet(flags.file)
    request = request_for(fleet, flags, (one_node(fleet, node).name,), yes=yes)
    with connected(request) as (link, observer):
        locks = keeping.locks(link, observer)
        owners = ", ".join(lock.owner for lock in locks)
        question = f"{node} is locked by {owners}. Take the lock away?"
        if locks and not (yes or options.confirmed(question, somebody=flags.attended)):
            return Exit.DIFFERS
        for lock in locks:
            keeping.unlock(link, observer, lock)
    if flags.as_json:
        console.document({"node": node, "unlocked": [lock.owner for lock in locks]})
    else:
        console.result(f"{node}: " + (f"unlocked, from {owners}" if locks else "not locked"))
    return Exit.OK


def _history(fleet: Fleet, flags: Flags, node: str) -> list[Entry]:
    from fleetctl.execute import keeping
    from fleetctl.run import connected

    with connected(request_for(fleet, flags, (one_node(fleet, node).name,))) as (link, observer):
        return keeping.history(link, observer)
