"""Options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console

Command = TypeVar("Command", bound=Callable[..., Any])


def output(command: Command) -> Command:
    """`--json` and `--debug`; the guard looks for --debug by itself."""
    command = click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")(
        command
    )
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")(command)


def sudo_password(command: Command) -> Command:
    """Where the password of sudo comes from; there is no option that holds it."""
    command = click.option(
        "--sudo-password-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the password of sudo, for batch use.",
    )(command)
    return click.option(
        "-K", "--ask-sudo-password", is_flag=True, help="Ask once for the password of sudo."
    )(command)


def login_password(command: Command) -> Command:
    """Where the password for one login comes from; there is no option that holds it."""
    command = click.option(
        "--password-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with that password, for batch use.",
    )(command)
    return click.option(
        "--ask-password",
        is_flag=True,
        help="Log in with a password once, and let your key in, as ssh-copy-id does.",
    )(command)


def password_source(
    ask: bool, file: Path | None, prompt: str = "Password of sudo"
) -> Callable[[], str] | None:
    if file is not None:
        return lambda: file.read_text().split("\n")[0]
    return partial(_asked_password, prompt) if ask else None


def _asked_password(prompt: str) -> str:
    if not sys.stdin.isatty():
        what = "there is no terminal on which a password could be asked for"
        raise FleetError(what, hint="name a file that holds it, see --help", exit_code=Exit.USAGE)
    return str(click.prompt(prompt, hide_input=True, err=True))


inventory_file = click.option(
    "-i",
    "--inventory",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    envvar="FLEETCTL_INVENTORY",
    help="Inventory  [default: inventory/fleet.yaml, fleet.yaml]",
)


def confirmed(question: str, *, somebody: bool) -> bool:
    """What a person at the terminal says; without one, no."""
    if not somebody:
        console.talk("nothing was changed: there is nobody to ask; say --yes to go on")
        return False
    return click.confirm(question, err=True)


def ask_about_host_key(name: str, fingerprint: str) -> bool:
    """As ssh asks; only a whole word is an answer."""
    text = f"The host key of {name} is not known: {fingerprint}. Is it right?"
    return click.prompt(text, type=click.Choice(["yes", "no"]), err=True) == "yes"


def share(text: str) -> Callable[[int], int]:
    """A number of nodes, or a percentage of them: how many that is of so many."""
    number = text.removesuffix("%")
    percent = number != text
    if not number.isdecimal() or (percent and int(number) > 100):
        raise click.BadParameter(f"{text!r} is neither a number nor a percentage.")
    return lambda count: count * int(number) // 100 if percent else int(number)


limit = click.option(
    "-l", "--limit", metavar="PATTERNS", help="Only these nodes: 'mac*,!mini,@group,tag:heavy'."
)
