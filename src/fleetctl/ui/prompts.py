"""Questions to the user, on a terminal only."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


def at_terminal() -> bool:
    """Whether questions can be answered. Python has no stdin where it was closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str, *, interactive: bool) -> bool:
    """The user's answer; without a terminal it is no."""
    if not interactive:
        console.talk("nothing was changed: not a terminal; re-run with --yes")
        return False
    return click.confirm(question, err=True)


def ask_host_key(name: str, fingerprint: str) -> bool:
    """As ssh asks; only a whole word is an answer."""
    text = f"The host key of {name} is not known: {fingerprint}. Is it right?"
    return click.prompt(text, type=click.Choice(["yes", "no"]), err=True) == "yes"


def is_expected_key(name: str, shown: str, expected: str | None, *, interactive: bool) -> bool:
    """Whether a host key is the expected one or, if none is given, whether the user accepts it."""
    if expected is None:
        return interactive and ask_host_key(name, shown)
    if expected != shown:
        raise FleetError(
            f"{name} shows {shown}, not {expected}",
            hint="compare with the machine's own fingerprint: the connection may be intercepted",
            exit_code=Exit.REFUSED,
        )
    return True


def password_source(
    ask: bool, file: Path | None, prompt: str = "Password of sudo"
) -> Callable[[], str] | None:
    """How to get a password, if one is to be used: from a file, or from the user."""
    if file is not None:
        return lambda: file.read_text().split("\n")[0]
    return partial(_ask_password, prompt) if ask else None


def _ask_password(prompt: str) -> str:
    if not at_terminal():
        what = "a password cannot be asked for without a terminal"
        raise FleetError(what, hint="name a file that holds it, see --help", exit_code=Exit.USAGE)
    return str(click.prompt(prompt, hide_input=True, err=True))
