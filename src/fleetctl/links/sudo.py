"""A root shell on a node: the login shell if it is root's, else one started by sudo."""

import secrets
import time
from contextlib import suppress

from fleetctl.errors import FleetError
from fleetctl.links.link import Link, Process
from fleetctl.shell import library

_BECOME_ROOT = library(__file__, "sudo.sh")
_UNATTENDED = "-n"
# `-k`: with cached credentials sudo would not read the password, and the root shell would run it.
_FROM_STDIN = "-k -S -p ''"
_SECONDS_TO_EXPLAIN = 1


def root_shell(link: Link, password: str | None, timeout: float) -> Process:
    """Raises FleetError if sudo refuses. A password is tried once, and sent on stdin only.

    sudo without a password is tried first: if none is needed, sudo does not read one, and the
    root shell would run it as a command.
    """
    if password is not None:
        with suppress(FleetError):
            return root_shell(link, None, timeout)
    nonce = secrets.token_hex(16)
    options = _UNATTENDED if password is None else _FROM_STDIN
    shell = link.shell()
    shell.send(f"{_BECOME_ROOT}become_root {nonce} {options}\n".encode())
    try:
        if password is not None:
            _wait_for(shell, f"ready {nonce}\n", timeout)
            shell.send(f"{password}\n".encode())
        _wait_for(shell, f"root {nonce}\n", timeout)
    except FleetError:
        shell.close()
        raise
    return shell


def _wait_for(shell: Process, line: str, timeout: float) -> None:
    """Any message of sudo's is a refusal: another try could lock the account."""
    deadline = time.monotonic() + timeout
    output, errors = "", ""
    while (left := deadline - time.monotonic()) > 0:
        received = shell.receive(left)
        if received is not None:
            output += received[0].decode(errors="replace")
            errors += received[1].decode(errors="replace")
        if output.endswith(line):
            return
        if received is None:
            break
        if errors.strip():
            deadline = min(deadline, time.monotonic() + _SECONDS_TO_EXPLAIN)
    last = ([text.strip() for text in errors.splitlines() if text.strip()] or ["no answer"])[-1]
    raise FleetError(f"sudo did not let us in: {last}", hint="try -K and the right password")
