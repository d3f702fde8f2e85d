"""Starting a project: init."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("fleet.yaml"),
    show_default=True,
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there; it is kept as a backup.")
@options.output
def init(output: Path, force: bool, as_json: bool) -> None:
    """Write a commented inventory to start from."""
    from fleetctl.inventory import reference
    from fleetctl.inventory.json_schema import json_schema
    from fleetctl.model.fleet import project_root

    if output.exists() and not force:
        raise FleetError(
            f"{output} is there already",
            hint="choose another file with --output, or replace it with --force",
            exit_code=Exit.USAGE,
        )
    if output.exists() and not output.is_file():
        raise FleetError(f"{output} is not a regular file", exit_code=Exit.USAGE)
    state = project_root(output) / ".fleetctl"
    schema = state / "schema.json"
    modeline = f"# yaml-language-server: $schema={os.path.relpath(schema, output.parent)}\n"
    try:
        backup = _backup(output) if output.exists() else None
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("x", encoding="utf-8") as stream:
            stream.write(modeline + reference.text())
        state.mkdir(mode=0o700, exist_ok=True)
        (state / ".gitignore").write_text("*\n")
        schema.write_text(json.dumps(json_schema(), indent=2))
    except OSError as error:
        raise FleetError(f"{output} cannot be written: {error.strerror}") from None
    if as_json:
        console.document({"written": str(output), "backup": str(backup) if backup else None})
        return
    console.result(f"wrote {output}" + (f" (the old one is {backup})" if backup else ""))
    console.talk("next: edit its nodes, then run fleetctl validate")


def _backup(file: Path) -> Path:
    """The old file under a name that says when; nothing is lost."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return file.rename(file.with_name(f"{file.name}.{moment}.bak"))
