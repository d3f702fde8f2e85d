"""A shell as root: one that is, or becomes `sudo /bin/sh -s`, and says so before more is sent."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress

from fleetctl.errors import FleetError
from fleetctl.links import Link, Process

# `-k`, or credentials that sudo has cached would hand the password to the shell as a command.
_BECOME = """{{
[ "$(id -u)" != 0 ] || exec /bin/sh -c 'printf "root {nonce}\\n"; exec /bin/sh -s'
printf 'ready {nonce}\\n'
exec sudo {options} /bin/sh -c 'printf "root {nonce}\\n"; exec /bin/sh -s'
}}
"""


_SECONDS_TO_EXPLAIN = 1


def root_shell(link: Link, password: str | None, timeout: float) -> Process:
    """`password` is None where there is none. It is tried once, and goes through stdin only.

    Where sudo needs none, the shell behind it would take the password for a command.
    """
    if password is not None:
        with suppress(FleetError):
            return root_shell(link, None, timeout)
    nonce = secrets.token_hex(16)
    shell = link.shell()
    options = "-n" if password is None else "-k -S -p ''"
    shell.send(_BECOME.format(nonce=nonce, options=options).encode())
    try:
        if password is not None:
            _wait_for(shell, f"ready {nonce}\n", timeout)
            shell.send(f"{password}\n".encode())
        _wait_for(shell, f"root {nonce}\n", timeout)
    except FleetError:
        shell.close()
        raise
    return shell


def _wait_for(shell: Process, word: str, timeout: float) -> None:
    """Whatever sudo says instead means no: a second try would use up the account's patience."""
    deadline = time.monotonic() + timeout
    heard, said = "", ""
    while (left := deadline - time.monotonic()) > 0:
        received = shell.receive(left)
        if received is not None:
            heard += received[0].decode(errors="replace")
            said += received[1].decode(errors="replace")
        if heard.endswith(word):
            return
        if received is None:
            break
        if said.strip():
            deadline = min(deadline, time.monotonic() + _SECONDS_TO_EXPLAIN)
    last = ([line.strip() for line in said.splitlines() if line.strip()] or ["no answer"])[-1]
    raise FleetError(f"sudo did not let us in: {last}", hint="try -K and the right password")
