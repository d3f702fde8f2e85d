"""Starting a project: init."""

from __future__ import annotations

import json
import os
import shlex
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
@click.option("--force", is_flag=True, help="Replace an existing file; it is kept as a backup.")
@options.output
def init(output: Path, force: bool, as_json: bool) -> None:
    """Write a commented inventory to start from."""
    from fleetctl.inventory import default_file, json_schema, reference
    from fleetctl.model.fleet import project_root
    from fleetctl.project import make_state

    if output.exists() and not force:
        raise FleetError(
            f"{output} exists already",
            hint="choose another file with --output, or replace it with --force",
            exit_code=Exit.USAGE,
        )
    if output.exists() and not output.is_file():
        raise FleetError(f"{output} is not a regular file", exit_code=Exit.USAGE)
    state = project_root(output) / ".fleetctl"
    schema = state / "schema.json"
    modeline = f"# yaml-language-server: $schema={os.path.relpath(schema, output.parent)}\n"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        make_state(state)
        schema.write_text(json.dumps(json_schema(), indent=2))
        backup = _backup(output) if output.exists() else None
        with output.open("x", encoding="utf-8") as stream:
            stream.write(modeline + reference.text())
    except OSError as error:
        what = f"{error.filename or output} cannot be written: {error.strerror}"
        raise FleetError(what) from None
    if as_json:
        console.document({"written": str(output), "backup": str(backup) if backup else None})
        return
    console.result(f"wrote {output}" + (f" (the old one is {backup})" if backup else ""))
    used = default_file()
    if used and used.exists() and used.samefile(output):
        console.talk("next: edit its nodes, then run fleetctl validate")
        return
    console.talk(f"next: edit its nodes, then run fleetctl validate -i {shlex.quote(str(output))}")
    if used:
        console.talk(f"without -i, {used} is the inventory")


def _backup(file: Path) -> Path:
    """Renames the old file to a name with the time."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return file.rename(file.with_name(f"{file.name}.{moment}.bak"))
