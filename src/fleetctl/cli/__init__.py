"""The command line: click commands, one module a verb family.

A command turns flags into calls and a result into an exit code. What is slow to import is imported
inside the command, so that help, completion and usage errors start fast.
"""

import sys
from typing import NoReturn

import click

from fleetctl import __version__
from fleetctl.cli import apply, demo, docs, guard, inventory, project, restore, trust


class _Commands(click.Group):
    """Commands in the order of their use, with a suggestion for a mistyped one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.commands, n=1)
            maybe = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{maybe}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fleetctl")
def cli() -> None:
    """Turn the machines you own into one private backend for coding agents."""


for _command in (
    project.init,
    inventory.validate,
    inventory.inventory,
    apply.check,
    apply.plan,
    apply.apply,
    apply.provision,
    trust.trust,
    restore.history,
    restore.restore,
    restore.remove,
    restore.unlock,
    inventory.schema,
    docs.docs,
    docs.completion,
    demo.demo,
):
    cli.add_command(_command)


def main() -> NoReturn:
    """Runs the command line and exits with its code."""
    guard.leave(guard.run(cli, sys.argv[1:]))
