"""Starting a project: init; and how the files of a project are written."""

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
@click.option("--force", is_flag=True, help="Replace a file that is there; it is kept as a backup.")
@options.output
def init(output: Path, force: bool, as_json: bool) -> None:
    """Write a commented inventory to start from."""
    from fleetctl.inventory import default_file, json_schema, reference
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
    if used and used.samefile(output):
        console.talk("next: edit its nodes, then run fleetctl validate")
        return
    console.talk(f"next: edit its nodes, then run fleetctl validate -i {shlex.quote(str(output))}")
    if used:
        console.talk(f"without -i, {used} is the inventory")


def make_state(folder: Path) -> None:
    """The folder of what fleetctl keeps for itself, which is nobody else's and not for git."""
    folder.mkdir(mode=0o700, exist_ok=True)
    ignored = folder / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n")


def write_whole(file: Path, data: bytes) -> None:
    """Old or new and nothing in between, with the owner and the mode that the old one had.

    What a symbolic link leads to is replaced, not the link.
    """
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    before = target.stat() if target.exists() else None
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if before else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if before:
                now = os.fstat(descriptor)
                if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, before.st_mode & 0o7777)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _backup(file: Path) -> Path:
    """The old file under a name that says when; nothing is lost."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return file.rename(file.with_name(f"{file.name}.{moment}.bak"))
