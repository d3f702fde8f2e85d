"""Why a connection failed, in words that help."""

from __future__ import annotations

import errno
import socket

import fabric
import paramiko
from paramiko.ssh_exception import ChannelException, IncompatiblePeer, ProxyCommandFailure

from fleetctl.errors import Exit, FleetError
from fleetctl.links.keys import Login
from fleetctl.model.address import join_host_port


class LoginRefused(FleetError):
    """The machine is there, and does not let us in."""


def explained(
    error: Exception, connection: fabric.Connection, login: Login, timeout: float
) -> FleetError:
    """The error as one that says what was tried, and what to do."""
    place = join_host_port(connection.host, connection.port)
    called = connection.original_host
    known_as = f"{called} is {connection.host}: " if called != connection.host else ""
    match error:
        case IncompatiblePeer():
            return _weak(error, place)
        case paramiko.BadAuthenticationType() if login.once and _takes_no_password(error):
            what = f"{place} takes no password, only {', '.join(error.allowed_types)}"
            hint = "put your public key into ~/.ssh/authorized_keys there by other means"
        case paramiko.AuthenticationException():
            return _login_refused(connection, login)
        case paramiko.SSHException() if "authentication methods" in str(error):
            return _login_refused(connection, login)
        case socket.gaierror():
            what, hint = f"the name {connection.host!r} cannot be resolved", "check ssh.host"
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
        case _ if "banner" in str(error):
            what, hint = f"{place} sent no SSH banner", "is this an SSH server, and not too busy?"
        case _:
            what, hint = f"{place}: {error or type(error).__name__}", f"try: ssh {called}"
    return FleetError(known_as + what, hint=hint, exit_code=Exit.UNREACHABLE)


def _weak(error: Exception, place: str) -> FleetError:
    kind = str(error).partition("(")[2].rstrip(")") or str(error)
    return FleetError(
        f"{place} offers only outdated algorithms: {kind}",
        hint="update the SSH server of the machine",
        exit_code=Exit.REFUSED,
    )


def _login_refused(connection: fabric.Connection, login: Login) -> FleetError:
    tried = f"tried {', '.join(login.tried)}" if login.tried else "there was no key to try"
    unusable = f"; not usable: {', '.join(login.unusable)}" if login.unusable else ""
    port = f" -p {connection.port}" if connection.port != 22 else ""
    copy = f"ssh-copy-id{port} {connection.user}@{connection.host}"
    return LoginRefused(
        f"login as {connection.user} was refused ({tried}{unusable})",
        hint="check the user and the password" if login.once else copy,
        exit_code=Exit.UNREACHABLE,
    )


def _takes_no_password(error: Exception) -> bool:
    """Whether the server has said that a password is not even looked at."""
    types = error.allowed_types if isinstance(error, paramiko.BadAuthenticationType) else None
    return types is not None and not {"password", "keyboard-interactive"} & set(types)
