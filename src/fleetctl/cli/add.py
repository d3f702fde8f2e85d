"""A machine that is not in the inventory yet: logged in to, looked at, shown, and written down.

`provision --add` begins with this.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click

from fleetctl.cli.options import at_terminal
from fleetctl.cli.project import make_state, write_whole
from fleetctl.cli.trust import is_right
from fleetctl.errors import Exit, FleetError
from fleetctl.gather import Observer, Task, questions
from fleetctl.inventory import DEFAULT_FILES, Edited, default_file, read_bytes, with_node
from fleetctl.links.authorize import authorize
from fleetctl.links.dial import Dialler
from fleetctl.links.host_keys import Ask, HostKeys
from fleetctl.links.reasons import LoginRefused
from fleetctl.model import address
from fleetctl.model.facts import Facts
from fleetctl.model.fleet import Node
from fleetctl.ui import console
from fleetctl.ui.machine import described

Password = Callable[[], str]


def add(
    file: Path | None,
    target: str,
    *,
    name: str | None = None,
    group: str | None = None,
    fingerprint: str | None = None,
    password: Password | None = None,
    yes: bool = False,
    timeout: float = 30,
) -> tuple[Path, str]:
    """Adds `[user@]host[:port]` to the inventory; returns where that is, and the node's name.

    Whatever can be wrong with the inventory is found before anything is contacted.
    """
    path = file or default_file() or DEFAULT_FILES[-1]
    before = read_bytes(path) if path.exists() else None
    ssh = _ssh(target)
    values = {"ssh": ssh, **({"groups": [group]} if group else {})}
    called = name or _name_of(str(ssh["host"]))
    edited = with_node(before or b"", path, called or _UNNAMED, values)
    state = edited.fleet.state
    again = f"fleetctl provision --add {shlex.quote(target)}"
    keys = HostKeys(state / "known_hosts", _judge(again, fingerprint, yes), in_inventory=False)
    with closing(Dialler(keys, timeout)) as dialler:
        node = edited.fleet.nodes[called or _UNNAMED]
        observer = Observer(dialler, Task(questions(())), timeout)
        try:
            facts = _look(observer, node, password, yes)
        except LoginRefused as error:
            hint = error.hint if password else f"{again} --ask-password"
            raise FleetError(error.message, hint=hint, exit_code=error.exit_code) from None
    if called is None:
        called = _own_name(facts)
        edited = with_node(before or b"", path, called, values)
    console.talk(f"{called}: {described(facts)}")
    _confirm(edited, path, yes)
    _write(edited, path, before)
    if before is None:
        make_state(state)
    console.talk(f"{called} is in {path} now")
    return path, called


_UNNAMED = "the-new-machine"
"""Until it has said what it is called."""


def _ssh(target: str) -> dict[str, object]:
    """The `ssh` of a node that is reached at `[user@]host[:port]`."""
    user, at, place = target.rpartition("@")
    try:
        host, port = address.split_host_port(place)
    except ValueError as error:
        raise FleetError(f"--add {target!r}: {error}", exit_code=Exit.USAGE) from None
    if not host or (at and not user) or ":" in user:
        what = f"--add {target!r} is not [user@]host[:port]"
        raise FleetError(what, hint="as in ada@mini-64.local", exit_code=Exit.USAGE)
    given = {"host": host, "user": user or None, "port": port}
    return {key: value for key, value in given.items() if value is not None}


def _name_of(host: str) -> str | None:
    """The first label of a host's name; an address has none."""
    if ":" in host or re.fullmatch(r"[\d.]+", host):
        return None
    return host.split(".")[0].lower().lstrip("_") or None


def _own_name(facts: Facts) -> str:
    name = _name_of(facts.host.name)
    if name in (None, "localhost"):
        what = f"the machine calls itself {facts.host.name!r}, which is no name for a node"
        raise FleetError(what, hint="give it one with --as NAME", exit_code=Exit.USAGE)
    return str(name)


def _judge(again: str, fingerprint: str | None, yes: bool) -> Ask:
    """Who says whether an unknown host key is right: the fingerprint that was given, or a person.

    `fleetctl trust` cannot: it knows only the machines of the inventory.
    """

    def judge(name: str, shown: str) -> bool:
        if is_right(name, shown, fingerprint, somebody=at_terminal() and not yes):
            return True
        raise FleetError(
            f"the host key of {name} is not known: {shown}",
            hint=f"compare it on the machine itself, then: {again} --fingerprint {shown}",
            exit_code=Exit.REFUSED,
        )

    return judge


def _look(observer: Observer, node: Node, password: Password | None, yes: bool) -> Facts:
    """Where no key opens the door and there is a password, it is used once, to let the key in."""
    try:
        facts = _facts(observer, node)
    except LoginRefused:
        if password is None:
            raise
        if not (yes or at_terminal()):
            what = "your key would be put into its ~/.ssh/authorized_keys; nothing was done"
            raise FleetError(what, hint=_YES, exit_code=Exit.DIFFERS) from None
        _let_key_in(observer, node, password)
    else:
        if password is not None:
            console.talk("your key opens it already; the password was not needed")
        return facts
    try:
        return _facts(observer, node)
    except LoginRefused as error:
        raise FleetError(
            f"the key is in its ~/.ssh/authorized_keys now, and still {error.message}",
            hint="look there at the modes of ~ and ~/.ssh, and at the log of its SSH server",
            exit_code=error.exit_code,
        ) from None


def _facts(observer: Observer, node: Node) -> Facts:
    with closing(observer.connect(node)) as link:
        return observer.facts(link, node)


def _let_key_in(observer: Observer, node: Node, password: Password) -> None:
    assert node.ssh is not None
    key = observer.dialler.public_key(node.ssh)
    if key is None:
        raise FleetError(
            "there is no key of yours to let in",
            hint="make one with ssh-keygen; if it has a passphrase: ssh-add",
            exit_code=Exit.UNREACHABLE,
        )
    with closing(observer.dialler.dial(node.name, node.ssh, password())) as link:
        added = authorize(link, key, observer.timeout)
    console.talk(f"your key is in its ~/.ssh/authorized_keys {'now' if added else 'already'}")


_YES = "say --yes where there is no terminal"


def _confirm(edited: Edited, path: Path, yes: bool) -> None:
    console.talk(f"{path}:")
    for line in edited.added.splitlines():
        console.talk(console.styled(f"+ {line}", "added", sys.stderr))
    if yes:
        return
    if not at_terminal():
        raise FleetError("nothing was written", hint=_YES, exit_code=Exit.DIFFERS)
    if not click.confirm(f"Write this into {path}?", err=True):
        raise FleetError("nothing was written", exit_code=Exit.DIFFERS)


def _write(edited: Edited, path: Path, before: bytes | None) -> None:
    if before != (read_bytes(path) if path.exists() else None):
        what = f"{path} was changed by somebody else meanwhile; nothing was written"
        raise FleetError(what, hint="try again")
    try:
        write_whole(path, edited.data)
    except OSError as error:
        raise FleetError(f"{path} cannot be written: {error.strerror}") from None
