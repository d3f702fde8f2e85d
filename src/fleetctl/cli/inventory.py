"""Commands that read an inventory and contact no node: validate, inventory, schema."""

from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@options.inventory_file
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@options.output
def validate(file: Path | None, strict: bool, as_json: bool) -> None:
    """Validate the inventory.

    Playbooks of the project are validated too.
    """
    from fleetctl.project import load_with_warnings

    fleet, warnings = load_with_warnings(file)
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
    from fleetctl.project import load_fleet
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
    from fleetctl.inventory import json_schema

    console.foreign_document(json_schema())
