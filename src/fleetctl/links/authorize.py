"""Adds a public key to ~/.ssh/authorized_keys of a node."""

from fleetctl.errors import FleetError
from fleetctl.links.link import Link, answers
from fleetctl.shell import Question, library, quote

_AUTHORIZE_KEY = library(__file__, "authorize.sh")


def authorize(link: Link, public_key: str, timeout: float) -> bool:
    """True if the key was added, False if it was there already."""
    call = f"authorize_key {quote(public_key)} {quote(f'{public_key} fleetctl')}"
    part = Question("key", f"{_AUTHORIZE_KEY}{call}")
    lines = answers(link.shell(), [part], timeout)["key"].text.split("\n")
    result = next((line for line in reversed(lines) if line.strip()), "no output")
    if result not in ("present", "added"):
        raise FleetError(
            f"the key could not be put into ~/.ssh/authorized_keys: {result}",
            hint="check the owner of ~/.ssh on the machine, and whether its disk is full",
        )
    return result == "added"
