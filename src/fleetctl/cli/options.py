"""Options that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from fleetctl.model.options import Flags, Rollout, Share

Decorator = Callable[[Any], Any]


def _together(*decorators: Decorator) -> Decorator:
    """Several options as one; help lists them in this order."""
    return lambda command: functools.reduce(lambda made, add: add(made), decorators[::-1], command)


_READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)

output = _together(
    click.option("--json", "as_json", is_flag=True, help="Print a JSON document."),
    # guard.py reads it from the command line
    click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks."),
)

# No option takes a password: every user can read the command lines of all processes.
login_password = _together(
    click.option(
        "--ask-password",
        is_flag=True,
        help="Log in with a password once, and add your key, as ssh-copy-id does.",
    ),
    click.option("--password-file", type=_READABLE, help="File with that password, for batch use."),
)

inventory_file = click.option(
    "-i",
    "--inventory",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="Inventory  [default: inventory/fleet.yaml, fleet.yaml]",
)

limit = click.option(
    "-l", "--limit", metavar="PATTERNS", help="Only these nodes: 'mac*,!mini,@group,tag:heavy'."
)


class _Seconds(click.FloatRange):
    """A duration; `nan` is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
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
    """Like `_share`; a percentage that rounds down to none means one."""
    share = _share(text)
    if not text.endswith("%") and not share(1):
        raise click.BadParameter("at least 1 node must be allowed to be down.")
    return share


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
        help="Nodes to process in parallel.",
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
        help="Skip the rest when more nodes have failed.",
    ),
    click.option(
        "--health-timeout",
        type=SECONDS,
        default=60.0,
        show_default=True,
        help="Seconds to become healthy after a restart.",
    ),
    click.option(
        "--settle",
        type=_SECONDS_OR_NONE,
        default=3.0,
        show_default=True,
        help="Seconds that it must then stay up.",
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


for_node = _gathered(Flags, _REACHING, "flags")
for_plan = _gathered(Flags, _SHOWING, "flags")
for_nodes = _gathered(Flags, _LOOKING, "flags")
for_selected_nodes = _gathered(Flags, [limit, *_LOOKING], "flags")
for_changes = _gathered(Rollout, _CHANGING, "rollout")
