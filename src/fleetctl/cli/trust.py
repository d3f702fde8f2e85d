"""Accepting host keys: trust."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.cli.inventory import load_fleet, one_node
from fleetctl.cli.project import make_state
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@click.argument("node")
@options.inventory_file
@click.option("--fingerprint", metavar="SHA256:…", help="The fingerprint that the key must have.")
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
    from fleetctl.run import host_keys_of

    fleet = load_fleet(file)
    chosen = one_node(fleet, node)
    if chosen.ssh is None or chosen.ssh.is_local:
        raise FleetError(f"{node} is this machine, and has no host key", exit_code=Exit.USAGE)
    keys = host_keys_of(fleet)
    name, key = Connector(keys, timeout).host_key(chosen.name, chosen.ssh)
    shown = fingerprint_of(key.asbytes())
    known = keys.knows(name, key)
    if not known and keys.known(name) and not replace:
        keys.check(chosen.name, name, key)
    in_doubt = not known or fingerprint is not None
    if in_doubt and not is_right(name, shown, fingerprint, somebody=options.at_terminal()):
        hint = f"fleetctl trust {chosen.name} --fingerprint {shown}"
        raise FleetError(f"{name} shows {shown}", hint=hint, exit_code=Exit.REFUSED)
    if not known:
        make_state(fleet.state)
        keys.trust(name, key)
    said = "known" if known else "trusted"
    if as_json:
        console.document({"node": chosen.name, "name": name, "fingerprint": shown, "state": said})
    else:
        console.result(f"{chosen.name}: {said}: {name}" + (f" {shown}" if not fingerprint else ""))


def is_right(name: str, shown: str, expected: str | None, *, somebody: bool) -> bool:
    """Whether a key is the expected one or, where none is, whether somebody says so."""
    if expected is None:
        return somebody and options.ask_about_host_key(name, shown)
    if expected != shown:
        raise FleetError(
            f"{name} shows {shown}, not {expected}",
            hint="somebody may stand between you and it: look at the machine's own fingerprint",
            exit_code=Exit.REFUSED,
        )
    return True
