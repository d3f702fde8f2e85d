"""Accepting host keys: trust."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@click.argument("node")
@options.inventory_file
@click.option("--fingerprint", metavar="SHA256:…", help="Required fingerprint of the key.")
@click.option("--replace", is_flag=True, help="Accept that the key has changed.")
@click.option(
    "--timeout",
    type=options.SECONDS,
    default=30.0,
    show_default=True,
    help="Seconds to wait for the node.",
)
@options.output
def trust(
    node: str,
    file: Path | None,
    fingerprint: str | None,
    replace: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Accept the SSH host key of a node.

    A jump host on the way comes first. Compare the fingerprint with the one that the machine shows:
    ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    from fleetctl.links import Connector
    from fleetctl.links import fingerprint as fingerprint_of
    from fleetctl.project import load_fleet, make_state, one_node
    from fleetctl.run import host_keys_of
    from fleetctl.ui import prompts

    fleet = load_fleet(file)
    chosen = one_node(fleet, node)
    if chosen.ssh is None or chosen.ssh.is_local:
        raise FleetError(f"{node} is this machine and has no host key", exit_code=Exit.USAGE)
    keys = host_keys_of(fleet)
    name, key = Connector(keys, timeout).host_key(chosen.name, chosen.ssh)
    shown = fingerprint_of(key.asbytes())
    known = keys.knows(name, key)
    if not known and keys.known(name) and not replace:
        keys.check(chosen.name, name, key)
    in_doubt = not known or fingerprint is not None
    interactive = prompts.at_terminal()
    if in_doubt and not prompts.is_expected_key(name, shown, fingerprint, interactive=interactive):
        hint = f"fleetctl trust {chosen.name} --fingerprint {shown}"
        raise FleetError(f"{name} shows {shown}", hint=hint, exit_code=Exit.REFUSED)
    if not known:
        make_state(fleet.state)
        keys.trust(name, key)
    state = "known" if known else "trusted"
    if as_json:
        console.document({"node": chosen.name, "name": name, "fingerprint": shown, "state": state})
    else:
        console.result(f"{chosen.name}: {state}: {name}" + (f" {shown}" if not fingerprint else ""))
