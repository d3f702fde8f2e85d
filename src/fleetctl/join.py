"""A machine joins the fleet: log in, look at it, show it, and add it to the inventory.

`provision --add` begins with this.
"""

import re
import shlex
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fleetctl.errors import Exit, FleetError
from fleetctl.gather import Access, facts
from fleetctl.inventory import DEFAULT_FILES, Edited, default_file, read_bytes, with_node
from fleetctl.links import Ask, Connector, HostKeys, LocalLink, LoginRefused, authorize
from fleetctl.model import address
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Node, Target
from fleetctl.project import make_state, write_whole
from fleetctl.targets import node_target
from fleetctl.ui import console, prompts
from fleetctl.ui.fleet import describe_machine

Password = Callable[[], str]

_UNNAMED = "the-new-machine"
"""Until its own host name is known."""
_YES = "not a terminal: re-run with --yes"


@dataclass(frozen=True, slots=True)
class Machine:
    """What the command line says of the machine that joins."""

    address: str
    """`[user@]host[:port]`"""
    name: str | None = None
    group: str | None = None
    fingerprint: str | None = None
    password: Password | None = None
    """Of its login, for the first connection only."""


def join(
    file: Path | None, machine: Machine, *, yes: bool = False, timeout: float = 30
) -> tuple[Path, str]:
    """Adds the machine to the inventory; returns where that is, and the node's name.

    Errors of the inventory are found before anything is contacted.
    """
    path = file or default_file() or DEFAULT_FILES[-1]
    before = read_bytes(path) if path.exists() else None
    ssh = _ssh(machine.address)
    values = {"ssh": ssh, **({"groups": [machine.group]} if machine.group else {})}
    name = machine.name or _name_of(str(ssh["host"]))
    edited = with_node(before or b"", path, name or _UNNAMED, values)
    state = edited.fleet.state
    keys = HostKeys(state / "known_hosts", _key_check(machine, yes, state), in_inventory=False)
    with closing(Connector(keys, timeout)) as connector:
        seen = _look(connector, edited.fleet.nodes[name or _UNNAMED], machine, yes, timeout)
    if name is None:
        name = _own_name(seen)
        edited = with_node(before or b"", path, name, values)
    console.talk(f"{name}: {describe_machine(seen)}")
    _confirm(edited, path, yes)
    _write(edited, path, before)
    if before is None:
        make_state(state)
    console.talk(f"added {name} to {path}")
    return path, name


def _command(machine: Machine) -> str:
    return f"fleetctl provision --add {shlex.quote(machine.address)}"


def _ssh(place: str) -> dict[str, object]:
    """The `ssh` of a node that is reached at `[user@]host[:port]`."""
    user, at, rest = place.rpartition("@")
    try:
        host, port = address.split_host_port(rest)
    except ValueError as error:
        raise FleetError(f"--add {place!r}: {error}", exit_code=Exit.USAGE) from None
    if not host or (at and not user) or ":" in user:
        what = f"--add {place!r} is not [user@]host[:port]"
        raise FleetError(what, hint="as in ada@mini-64.local", exit_code=Exit.USAGE)
    given = {"host": host, "user": user or None, "port": port}
    return {key: value for key, value in given.items() if value is not None}


def _name_of(host: str) -> str | None:
    """The first label of a host name; an address has none."""
    if ":" in host or re.fullmatch(r"[\d.]+", host):
        return None
    return host.split(".")[0].lower().lstrip("_") or None


def _own_name(seen: Facts) -> str:
    name = _name_of(seen.host.name)
    if name in (None, "localhost"):
        what = f"the host name {seen.host.name!r} cannot be the name of a node"
        raise FleetError(what, hint="give it one with --as NAME", exit_code=Exit.USAGE)
    return str(name)


def _key_check(machine: Machine, yes: bool, state: Path) -> Ask:
    """Accepts a host key by the given fingerprint, or by asking.

    `fleetctl trust` is no alternative here: it knows only the machines of the inventory.
    """

    def check(name: str, shown: str) -> bool:
        interactive = prompts.at_terminal() and not yes
        if prompts.is_expected_key(name, shown, machine.fingerprint, interactive=interactive):
            make_state(state)  # the key will be kept there
            return True
        hint = "compare it on the machine itself, then: "
        raise FleetError(
            f"the host key of {name} is not known: {shown}",
            hint=f"{hint}{_command(machine)} --fingerprint {shown}",
            exit_code=Exit.REFUSED,
        )

    return check


def _look(connector: Connector, node: Node, machine: Machine, yes: bool, timeout: float) -> Facts:
    """With a password, and where no key is accepted, the password is used once to add the key."""
    target = node_target(node)
    assert target is not None
    try:
        seen = _facts(connector, target, timeout)
    except LoginRefused as error:
        if machine.password is None:
            hint = f"{_command(machine)} --ask-password"
            raise FleetError(error.message, hint=hint, exit_code=error.exit_code) from None
    else:
        if machine.password is not None:
            console.talk("your key is accepted already; the password was not needed")
        return seen
    if not (yes or prompts.at_terminal()):
        what = "your key would be added to its ~/.ssh/authorized_keys; nothing was done"
        raise FleetError(what, hint=_YES, exit_code=Exit.DIFFERS)
    _authorize(connector, target, machine.password, timeout)
    try:
        return _facts(connector, target, timeout)
    except LoginRefused as error:
        raise FleetError(
            f"the key is in its ~/.ssh/authorized_keys now, and still {error.message}",
            hint="check the modes of ~ and ~/.ssh there, and the log of its SSH server",
            exit_code=error.exit_code,
        ) from None


def _facts(connector: Connector, target: Target, timeout: float) -> Facts:
    local = target.link.is_local
    link = LocalLink() if local else connector.connect(target.name, target.link)
    with closing(link):
        return facts(link, target, (), Access(timeout))


def _authorize(connector: Connector, target: Target, password: Password, timeout: float) -> None:
    key = connector.public_key(target.link)
    if key is None:
        raise FleetError(
            "you have no key that could be added",
            hint="create one with ssh-keygen; if it has a passphrase: ssh-add",
            exit_code=Exit.UNREACHABLE,
        )
    with closing(connector.connect(target.name, target.link, password())) as link:
        added = authorize(link, key, timeout)
    console.talk(f"your key is in its ~/.ssh/authorized_keys {'now' if added else 'already'}")


def _confirm(edited: Edited, path: Path, yes: bool) -> None:
    console.talk(f"{path}:")
    for line in edited.added.splitlines():
        console.talk(console.styled(f"+ {line}", "added", sys.stderr))
    if yes:
        return
    if not prompts.at_terminal():
        raise FleetError("nothing was written", hint=_YES, exit_code=Exit.DIFFERS)
    if not prompts.confirm(f"Write this into {path}?", interactive=True):
        raise FleetError("nothing was written", exit_code=Exit.DIFFERS)


def _write(edited: Edited, path: Path, before: bytes | None) -> None:
    if before != (read_bytes(path) if path.exists() else None):
        what = f"{path} was changed meanwhile; nothing was written"
        raise FleetError(what, hint="try again")
    try:
        write_whole(path, edited.data)
    except OSError as error:
        raise FleetError(f"{path} cannot be written: {error.strerror}") from None
