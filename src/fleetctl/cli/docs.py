"""Help beyond --help: docs, completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from fleetctl.cli import options
from fleetctl.cli.guard import COMPLETE, PROGRAM
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("topic", required=False)
@options.output
def docs(topic: str | None, as_json: bool) -> None:
    """Show a page of the documentation, or list them all."""
    from fleetctl import packaged
    from fleetctl.inventory import reference

    pages = {file.stem: file for file in sorted(packaged.folder("docs").glob("*.md"))}
    sections = reference.sections()
    if topic is None:
        _list(pages, list(sections), as_json)
        return
    if topic not in {*pages, *sections}:
        from fleetctl.inventory import did_you_mean

        hint = did_you_mean(topic, [*pages, *sections])
        raise FleetError(f"there is no topic {topic!r}", hint=hint, exit_code=Exit.USAGE)
    text = pages[topic].read_text(encoding="utf-8") if topic in pages else sections[topic]
    if as_json:
        console.document({"topic": topic, "text": text})
    elif topic in pages:
        console.page(text)
    else:
        console.result(text)


def _list(pages: dict[str, Path], sections: list[str], as_json: bool) -> None:
    titles = {name: _title(file) for name, file in pages.items()}
    if as_json:
        console.document({"pages": titles, "sections": sections})
        return
    for line in console.table(titles.items()):
        console.result(line)
    console.result(f"\nsections of the inventory: {', '.join(sections)}")


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").rstrip()


@click.command(epilog='For zsh: eval "$(fleetctl completion zsh)" in ~/.zshrc.')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@options.output
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of a shell."""
    complete = get_completion_class(shell)
    assert complete is not None
    script = complete(ctx.find_root().command, {}, PROGRAM, COMPLETE).source()
    if as_json:
        console.document({"shell": shell, "script": script})
    else:
        console.result(script)
