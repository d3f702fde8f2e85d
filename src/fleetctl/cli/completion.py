"""Shell completion: the script that a shell sources."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from fleetctl.cli import options
from fleetctl.cli.guard import COMPLETE, PROGRAM
from fleetctl.ui import console


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
