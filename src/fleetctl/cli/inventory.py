"""Looking at an inventory: validate, inventory, schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console

if TYPE_CHECKING:
    from fleetctl.inventory.problems import Problem
    from fleetctl.model.fleet import Fleet, Node


@click.command()
@options.inventory_file
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@options.output
def validate(file: Path | None, strict: bool, as_json: bool) -> None:
    """Say everything that is wrong with the inventory.

    Playbooks of your own are looked at too.
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
        said = ", ".join(
            f"{count} {kind[:-1] if count == 1 else kind}" for kind, count in counts.items()
        )
        console.result(f"{fleet.file}: valid: {said}")


@click.command()
@options.inventory_file
@options.limit
@click.option("--graph", is_flag=True, help="Groups, nodes, models and agents as a tree.")
@click.option("--ansible", is_flag=True, help="The JSON of a dynamic inventory for Ansible.")
@options.output
def inventory(
    file: Path | None, limit: str | None, graph: bool, ansible: bool, as_json: bool
) -> None:
    """Show what each node will be, and where each value comes from."""
    from fleetctl.inventory.select import select
    from fleetctl.ui import documents
    from fleetctl.ui import fleet as fleet_text

    if graph + ansible + as_json > 1:
        raise click.UsageError("Choose one of --graph, --ansible and --json.")
    fleet = load_fleet(file)
    nodes = select(fleet, limit)
    if ansible:
        console.foreign_document(documents.ansible_inventory(fleet, nodes))
    elif as_json:
        console.document(documents.of_fleet(fleet, nodes))
    else:
        for line in (fleet_text.graph if graph else fleet_text.values)(fleet, nodes):
            console.result(line)


@click.command()
@options.output
def schema(as_json: bool) -> None:
    """Print the JSON Schema of an inventory, for editors."""
    from fleetctl.inventory.json_schema import json_schema

    console.foreign_document(json_schema())


def one_node(fleet: Fleet, name: str) -> Node:
    """A node that is reached by SSH, or this machine, by its name."""
    node = fleet.nodes.get(name)
    if node is None or node.ssh is None:
        from fleetctl.inventory.problems import did_you_mean

        what = "is only routed to, and never touched" if node else f"is not in {fleet.file}"
        hint = None if node else did_you_mean(name, fleet.nodes)
        raise FleetError(f"{name} {what}", hint=hint, exit_code=Exit.USAGE)
    return node


def load_fleet(file: Path | None) -> Fleet:
    return _loaded(file)[0]


def _loaded(file: Path | None) -> tuple[Fleet, list[Problem]]:
    """The inventory; what is doubtful about it is said at once."""
    from fleetctl.inventory.load import find, load

    fleet, warnings = load(find(file))
    for problem in warnings:
        console.talk(console.printable(problem.line(str(fleet.file), kind="warning: ")))
    return fleet, warnings
