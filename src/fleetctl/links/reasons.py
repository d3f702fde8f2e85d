"""Turns errors of paramiko and of sockets into messages with a hint."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

import paramiko
from paramiko.ssh_exception import (
    BadAuthenticationType,
    ChannelException,
    IncompatiblePeer,
    ProxyCommandFailure,
)

from fleetctl.errors import Exit, FleetError
from fleetctl.links.login import Login, Route
from fleetctl.model.address import join_host_port

_OFFERS = {
    "kex": "kex algos",
    "host key": "server key",
    "cipher": "server encrypt",
    "mac": "server mac",
}
"""The word for an algorithm in paramiko's error: the heading of the server's list in its log."""

_BY_PASSWORD = {"password", "keyboard-interactive"}
"""Authentication methods that take a password."""


class LoginRefused(FleetError):
    """The machine answers and refuses the log-in."""


def explained(
    error: Exception, route: Route, login: Login, timeout: float, details: Sequence[str]
) -> FleetError:
    """`details` are the last debug messages of the SSH transport."""
    place = join_host_port(route.host, route.port)
    name = route.name
    known_as = f"{name} is {route.host}: " if name != route.host else ""
    match error:
        case IncompatiblePeer():
            return _weak(error, place, details)
        case BadAuthenticationType() if login.once and not _BY_PASSWORD & {*error.allowed_types}:
            what = f"{place} takes no password, only {', '.join(error.allowed_types)}"
            hint = "put your public key into ~/.ssh/authorized_keys there by other means"
        case paramiko.AuthenticationException():
            return _login_refused(route, login)
        case paramiko.SSHException() if "authentication methods" in str(error):
            return _login_refused(route, login)
        case socket.gaierror():
            what, hint = f"the name {route.host!r} cannot be resolved", "check ssh.host"
        case TimeoutError():
            what, hint = f"no answer from {place} in {timeout:g} s", "is the machine awake?"
        case ConnectionRefusedError():
            what, hint = f"{place} refused the connection", "is its SSH server running?"
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.EACCES):
            what, hint = f"{place} cannot be reached: {error.strerror}", "check the network"
        case ChannelException():
            what, hint = f"it cannot reach {place}: {error.text}", "check the jump host"
        case ProxyCommandFailure():
            what, hint = f"the ProxyCommand failed: {error.error}", "check ~/.ssh/config"
        case _:
            what, hint = _by_text(str(error) or type(error).__name__, place, name)
    return FleetError(known_as + what, hint=hint, exit_code=Exit.UNREACHABLE)


def _by_text(text: str, place: str, name: str) -> tuple[str, str]:
    """Failures for which paramiko has no exception of its own."""
    if "banner" in text:
        return f"{place} sent no SSH banner", "is this an SSH server, and not too busy?"
    if "No existing session" in text:  # the server closed before all keys were offered
        what = f"{place} hung up during the log-in, perhaps as too many keys were offered"
        return what, "name the right one as ssh.identity_file, and no other is offered"
    return f"{place}: {text}", f"try: ssh {name}"


def _weak(error: Exception, place: str, details: Sequence[str]) -> FleetError:
    kind = str(error).partition("(")[2].rstrip(")") or str(error)
    heading = next((text for word, text in _OFFERS.items() if word in kind), kind)
    offers = [line.partition(": ")[2] for line in details if line.startswith(f"{heading}: ")]
    return FleetError(
        f"{place} offers only outdated algorithms: {kind} among {', '.join(offers) or 'them'}",
        hint="update the SSH server of the machine",
        exit_code=Exit.REFUSED,
    )


def _login_refused(route: Route, login: Login) -> FleetError:
    tried = f"tried {', '.join(login.tried)}" if login.tried else "there was no key to try"
    unusable = f"; not usable: {', '.join(login.unusable)}" if login.unusable else ""
    port = f" -p {route.port}" if route.port != 22 else ""
    copy = f"ssh-copy-id{port} {route.user}@{route.host}"
    return LoginRefused(
        f"login as {route.user} was refused ({tried}{unusable})",
        hint="check the user and the password" if login.once else copy,
        exit_code=Exit.UNREACHABLE,
    )
