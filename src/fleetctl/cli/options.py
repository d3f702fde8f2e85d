"""Options that several commands share, and the questions that go with them."""

from __future__ import annotations

import functools
import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from fleetctl.errors import Exit, FleetError
from fleetctl.model.rollout import Rollout, Share
from fleetctl.ui import console

Decorator = Callable[[Any], Any]


def _together(*decorators: Decorator) -> Decorator:
    """Several options as one; help lists them in this order."""
    return lambda command: functools.reduce(lambda made, add: add(made), decorators[::-1], command)


_READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)

output = _together(
    click.option("--json", "as_json", is_flag=True, help="Print a JSON document."),
    # the guard looks for it by itself
    click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks."),
)

# No option holds a password: the command lines of all processes can be read by everybody.
login_password = _together(
    click.option(
        "--ask-password",
        is_flag=True,
        help="Log in with a password once, and let your key in, as ssh-copy-id does.",
    ),
    click.option("--password-file", type=_READABLE, help="File with that password, for batch use."),
)

inventory_file = click.option(
    "-i",
    "--inventory",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    envvar="FLEETCTL_INVENTORY",
    help="Inventory  [default: inventory/fleet.yaml, fleet.yaml]",
)

limit = click.option(
    "-l", "--limit", metavar="PATTERNS", help="Only these nodes: 'mac*,!mini,@group,tag:heavy'."
)


class _Seconds(click.FloatRange):
    """A time that can be waited for, which `nan` is not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


_DAY = 24 * 3600
SECONDS = _Seconds(min=0, min_open=True, max=_DAY)
_SECONDS_OR_NONE = _Seconds(min=0, max=_DAY)


def _share(text: str) -> Share:
    """A number of nodes, or a percentage of them."""
    number = text.removesuffix("%")
    percent = number != text
    if not number.isdecimal() or (percent and int(number) > 100):
        raise click.BadParameter(f"{text!r} is neither a number nor a percentage.")
    return lambda count: count * int(number) // 100 if percent else int(number)


def _at_least_one(text: str) -> Share:
    """A percentage of few nodes is one too."""
    share = _share(text)
    if not text.endswith("%") and not share(1):
        raise click.BadParameter("at least 1 node must be allowed to be down.")
    return share


@dataclass(frozen=True, slots=True)
class Flags:
    """What all commands that look at nodes can be told."""

    file: Path | None
    timeout: float
    ask_sudo_password: bool
    sudo_password_file: Path | None
    as_json: bool
    only: tuple[str, ...] = ()
    diff: bool = True
    forks: int = 32
    json_events: bool = False
    limit: str | None = None

    @property
    def attended(self) -> bool:
        """Whether somebody sits at the terminal."""
        return at_terminal() and not self.as_json and not self.json_events


_REACHING: list[Decorator] = [
    inventory_file,
    click.option(
        "--timeout",
        type=SECONDS,
        default=30.0,
        show_default=True,
        help="Seconds to wait for a node.",
    ),
    click.option(
        "-K", "--ask-sudo-password", is_flag=True, help="Ask once for the password of sudo."
    ),
    click.option(
        "--sudo-password-file",
        type=_READABLE,
        help="File with the password of sudo, for batch use.",
    ),
    output,
]
_SHOWING: list[Decorator] = [
    *_REACHING,
    click.option("--diff/--no-diff", default=True, help="Show what files would change to."),
    click.option("--json-events", is_flag=True, help="Print events, a JSON object a line."),
]
_LOOKING: list[Decorator] = [
    click.option("--only", multiple=True, metavar="KIND", help="Only steps of this kind."),
    click.option(
        "--forks",
        type=click.IntRange(min=1),
        default=32,
        show_default=True,
        help="Nodes to see to in parallel.",
    ),
    *_SHOWING,
]
_CHANGING: list[Decorator] = [
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--serial",
        type=_at_least_one,
        metavar="N|N%",
        default="10%",
        show_default=True,
        help="Nodes that may be down at once.",
    ),
    click.option(
        "--max-fail",
        type=_share,
        metavar="N|N%",
        help="Leave the rest alone when more nodes have failed.",
    ),
    click.option(
        "--health-timeout",
        type=SECONDS,
        default=60.0,
        show_default=True,
        help="Seconds for a restarted Ollama to be well.",
    ),
    click.option(
        "--settle",
        type=_SECONDS_OR_NONE,
        default=3.0,
        show_default=True,
        help="Seconds for which it must then stay up.",
    ),
    click.option("--wait-idle", is_flag=True, help="Restart only when no client is connected."),
]


def _gathered(kind: type[Flags | Rollout], decorators: list[Decorator], name: str) -> Decorator:
    """Options that reach the command as one value."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathering(**values: Any) -> Any:
            names = [field.name for field in fields(kind) if field.name in values]
            return command(**{name: kind(**{each: values.pop(each) for each in names})}, **values)

        return gathering

    return _together(*decorators, decorate)


reaching = _gathered(Flags, _REACHING, "flags")
showing = _gathered(Flags, _SHOWING, "flags")
looking = _gathered(Flags, _LOOKING, "flags")
looking_at_some = _gathered(Flags, [limit, *_LOOKING], "flags")
changing = _gathered(Rollout, _CHANGING, "how")


def again(command: str, flags: Flags, nodes: tuple[str, ...] = ()) -> str:
    """Another command for the same inventory, nodes and steps, as they were said in this one."""
    words = ["fleetctl", command]
    source = click.get_current_context().get_parameter_source("file")
    if source == click.core.ParameterSource.COMMANDLINE:
        words += ["-i", str(flags.file)]
    if limit := ",".join(nodes) or flags.limit:
        words += ["--limit", limit]
    for kind in flags.only:
        words += ["--only", kind]
    return shlex.join(words)


def at_terminal() -> bool:
    """Whether questions can be answered. Python has no stdin where it was closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def password_source(
    ask: bool, file: Path | None, prompt: str = "Password of sudo"
) -> Callable[[], str] | None:
    if file is not None:
        return lambda: file.read_text().split("\n")[0]
    return functools.partial(_asked_password, prompt) if ask else None


def _asked_password(prompt: str) -> str:
    if not at_terminal():
        what = "there is no terminal on which a password could be asked for"
        raise FleetError(what, hint="name a file that holds it, see --help", exit_code=Exit.USAGE)
    return str(click.prompt(prompt, hide_input=True, err=True))


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
