"""The one path from the command line: check, plan, apply, provision."""

from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.model.options import Flags, Rollout
from fleetctl.ui import console


@click.command()
@click.option("--print-script", is_flag=True, help="Print the script that a node gets, and stop.")
@options.for_selected_nodes
def check(flags: Flags, print_script: bool) -> Exit:
    """Report differences from the inventory; change nothing."""
    from fleetctl.session import follow, printed_script

    if print_script:
        console.result(printed_script(flags))
        return Exit.OK
    return follow("check", flags)


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@options.for_nodes
def plan(flags: Flags, nodes: tuple[str, ...]) -> Exit:
    """Show what `apply` would do, on these nodes or on all."""
    from fleetctl.session import follow

    return follow("plan", flags, nodes)


@click.command()
@click.option("--dry-run", is_flag=True, help="Stop after the plan.")
@options.for_changes
@options.for_selected_nodes
def apply(flags: Flags, rollout: Rollout, dry_run: bool) -> Exit:
    """Bring nodes and controller to the state of the inventory.

    The plan is shown and confirmed; afterwards nothing may differ any more.
    """
    from fleetctl.session import follow

    return follow("apply", flags, rollout=None if dry_run else rollout)


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--add", "address", metavar="[USER@]HOST[:PORT]", help="Add it to the inventory.")
@click.option("--as", "name", help="Its name there.  [default: of the host]")
@click.option("--group", help="Its group there.")
@click.option("--fingerprint", metavar="SHA256:…", help="Required fingerprint of its host key.")
@options.login_password
@options.for_changes
@options.for_nodes
def provision(
    flags: Flags,
    rollout: Rollout,
    nodes: tuple[str, ...],
    address: str | None,
    ask_password: bool,
    password_file: Path | None,
    **new: str | None,
) -> Exit:
    """Make new machines nodes of the fleet.

    Every machine is checked for obstacles before anything is changed on one.
    """
    from dataclasses import replace

    from fleetctl.project import load_fleet
    from fleetctl.session import follow

    if address is not None:
        from fleetctl.join import Machine, join
        from fleetctl.ui.prompts import password_source

        if nodes:
            raise click.UsageError("Name nodes, or --add one; not both.")
        password = password_source(ask_password, password_file, f"Password for {address}")
        machine = Machine(address, **new, password=password)
        file, name = join(flags.file, machine, yes=rollout.yes, timeout=flags.timeout)
        flags, nodes = replace(flags, file=file), (name,)
    elif ask_password or password_file or any(new.values()):
        raise click.UsageError("--as, --group, --fingerprint and --ask-password go with --add.")
    fleet = load_fleet(flags.file)
    for each in nodes:
        if each not in fleet.nodes:
            hint = f"fleetctl provision --add {each}"
            raise FleetError(f"{each} is not in {fleet.file}", hint=hint, exit_code=Exit.USAGE)
    return follow("provision", flags, nodes, rollout, fleet=fleet)
