"""Letting a key in: a line in ~/.ssh/authorized_keys, put there as ssh-copy-id does."""

from __future__ import annotations

from fleetctl.errors import FleetError
from fleetctl.links import Link
from fleetctl.links.exchange import answers
from fleetctl.shell import Part, quote

# What is made here is for the user alone, by the script's umask; what is there keeps its mode.
# A last line without its end would swallow the key.
_INSTALL = r"""
exec 2>&1
cd || exit
[ -d .ssh ] || mkdir .ssh || exit
file=.ssh/authorized_keys
[ ! -e $file ] || ! grep -v '^[[:space:]]*#' $file | grep -qF -- {key} || {{ echo there; exit; }}
[ ! -s $file ] || [ -z "$(tail -c 1 $file)" ] || echo >>$file || exit
printf '%s\n' {line} >>$file || exit
! command -v restorecon >/dev/null 2>&1 || restorecon -F .ssh $file
echo added
"""


def authorize(link: Link, public_key: str, timeout: float) -> bool:
    """From now on this key logs in there; whether it had to be added."""
    commands = _INSTALL.format(key=quote(public_key), line=quote(f"{public_key} fleetctl"))
    said = answers(link.shell(), [Part("key", commands)], timeout)["key"].text.split("\n")
    word = next((line for line in reversed(said) if line.strip()), "nothing was said")
    if word not in ("there", "added"):
        raise FleetError(
            f"the key could not be put into ~/.ssh/authorized_keys: {word}",
            hint="look at ~/.ssh on the machine: whose is it, and is its disk full?",
        )
    return word == "added"
