"""Commands that read an inventory and contact no node: validate, inventory, schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.inventory import Problem
    from fleetctl.model.fleet import Fleet, Node


@click.command()
@options.inventory_file
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@options.output
def validate(file: Path | None, strict: bool, as_json: bool) -> None:
    """Validate the inventory.

    Playbooks of the project are validated too.
    """
    fleet, warnings = _loaded(file)
    for playbook in sorted((fleet.root / "playbooks").glob("*.yaml")):
        from fleetctl.playbook import read_playbook

        read_playbook(playbook.stem, fleet.root)
    if strict and warnings:
        count = f"{len(warnings)} warning" + ("s" if len(warnings) > 1 else "")
        raise FleetError(f"{fleet.file}: {count}, and --strict was given", exit_code=Exit.USAGE)
    counts = {kind: len(getattr(fleet, kind)) for kind in ("nodes", "models", "agents")}
    if as_json:
        problems = [problem.document() for problem in warnings]
        console.document({"file": str(fleet.file), "valid": True, **counts, "warnings": problems})
    else:
        summary = ", ".join(
            f"{count} {kind[:-1] if count == 1 else kind}" for kind, count in counts.items()
        )
        console.result(f"{fleet.file}: valid: {summary}")


@click.command()
@options.inventory_file
@options.limit
@click.option("--graph", is_flag=True, help="Print groups, nodes, models and agents as a tree.")
@click.option("--ansible", is_flag=True, help="Print the JSON of a dynamic inventory for Ansible.")
@options.output
def inventory(
    file: Path | None, limit: str | None, graph: bool, ansible: bool, as_json: bool
) -> None:
    """Show the effective settings of each node and their origin."""
    from fleetctl.inventory import select
    from fleetctl.ui import ansible as ansible_json
    from fleetctl.ui import fleet as fleet_text

    if graph + ansible + as_json > 1:
        raise click.UsageError("Choose one of --graph, --ansible and --json.")
    fleet = load_fleet(file)
    nodes = select(fleet, limit)
    if ansible:
        console.foreign_document(ansible_json.inventory(fleet, nodes))
    elif as_json:
        console.document(fleet_text.document(fleet, nodes))
    else:
        for line in (fleet_text.graph if graph else fleet_text.values)(fleet, nodes):
            console.result(line)


@click.command()
@options.output
def schema(as_json: bool) -> None:
    """Print the JSON Schema of an inventory, for editors."""
    from fleetctl.inventory import json_schema

    console.foreign_document(json_schema())


def one_node(fleet: Fleet, name: str) -> Node:
    """The node of that name, if fleetctl manages it; raises FleetError otherwise."""
    node = fleet.nodes.get(name)
    if node is None or node.ssh is None:
        from fleetctl.inventory import did_you_mean

        what = (
            "is only routed to, and not managed by fleetctl" if node else f"is not in {fleet.file}"
        )
        hint = None if node else did_you_mean(name, fleet.nodes)
        raise FleetError(f"{name} {what}", hint=hint, exit_code=Exit.USAGE)
    return node


def load_fleet(file: Path | None) -> Fleet:
    return _loaded(file)[0]


def _loaded(file: Path | None) -> tuple[Fleet, list[Problem]]:
    """The inventory and its warnings, which are printed here."""
    from fleetctl.inventory import find, load

    fleet, warnings = load(find(file))
    for problem in warnings:
        console.talk(console.printable(problem.line(str(fleet.file), kind="warning: ")))
    return fleet, warnings
