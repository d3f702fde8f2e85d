"""Letting a key in: a line in ~/.ssh/authorized_keys, put there as ssh-copy-id does."""

from __future__ import annotations

import secrets

from fleetctl.errors import FleetError
from fleetctl.links import Limits, Link
from fleetctl.links.exchange import collect
from fleetctl.shell import Garbled, Part, parse, quote, script

# What is made here is for the user alone, by the script's umask; what is there keeps its mode.
# A last line without its end would swallow the key.
_INSTALL = r"""
cd || exit
[ -d .ssh ] || mkdir .ssh || exit
file=.ssh/authorized_keys
[ ! -e $file ] || ! grep -v '^[[:space:]]*#' $file | grep -qF -- {key} || {{ echo there; exit; }}
[ ! -s $file ] || [ -z "$(tail -c 1 $file)" ] || echo >>$file || exit
printf '%s\n' {line} >>$file || exit
! command -v restorecon >/dev/null 2>&1 || restorecon -F .ssh $file
echo added
"""


def authorize(link: Link, public_key: str, limits: Limits) -> bool:
    """From now on this key logs in there; whether it had to be added."""
    nonce = secrets.token_hex(16)
    commands = _INSTALL.format(key=quote(public_key), line=quote(f"{public_key} fleetctl"))
    shell = link.shell()
    shell.send(script([Part("key", commands)], nonce).encode())
    shell.end_input()
    output = collect(shell, limits)
    try:
        answer = parse(output.output, nonce)["key"]
    except (Garbled, KeyError):
        answer = None
    if answer is None or answer.text.strip() not in ("there", "added"):
        said = output.errors.decode(errors="replace").strip() or "the shell did not run the script"
        raise FleetError(
            f"the key could not be put into ~/.ssh/authorized_keys: {said.splitlines()[-1]}",
            hint="look at ~/.ssh on the machine: whose is it, and is its disk full?",
        )
    return answer.text.strip() == "added"
