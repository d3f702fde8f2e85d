"""A run that is only told, for tests of what is drawn: `python -m tests.drawing SCENE`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from fleetctl.cli import guard
from fleetctl.errors import Exit
from fleetctl.model.events import Did, Doing, Ended, Gathered, Noted, Planned, Progress
from fleetctl.model.plan import Failed
from fleetctl.model.report import Outcome, Report
from fleetctl.ui import RunListener, console

HOSTILE = "[red]x[/] :smile: [link=https://evil.example]y[/link] \x1b[2J"
NAMES = ["mini", "studio", "[red]x[/]", "box-1", "box-2", "box-3", "box-4"]
_REDRAWN = 0.6
"""Seconds in which the display is redrawn at least once."""


def gather(tell: RunListener) -> None:
    for name in NAMES:
        tell(Gathered(Failed(name, HOSTILE, HOSTILE, Exit.UNREACHABLE)))


def busy(tell: RunListener) -> None:
    gather(tell)
    results = tuple(Failed(name, HOSTILE, HOSTILE, Exit.UNREACHABLE) for name in NAMES[:1])
    tell(Planned(Report(results, 0)))
    for name in NAMES:
        tell(Doing(name, "restarting Ollama"))
    tell(Progress("mini", "pull qwen3:latest", 1_200_000_000, 4_700_000_000, "B"))
    tell(Progress("studio", f"upload {HOSTILE}", 3, 12, "files"))
    time.sleep(_REDRAWN)
    tell(Did("mini", HOSTILE))
    tell(Noted("studio", HOSTILE))
    console.talk("a warning from elsewhere")
    time.sleep(_REDRAWN)


def ends(tell: RunListener) -> None:
    busy(tell)
    for name in NAMES:
        tell(Ended(Outcome(name, "changed")))


def asks(tell: RunListener) -> None:
    def question(text: str) -> str:
        time.sleep(_REDRAWN)
        return str(click.prompt(text, err=True))

    answer = tell.pausing(question)("Trust this key?")
    tell(Noted("mini", f"the answer was {answer}"))
    gather(tell)


def fails(tell: RunListener) -> None:
    busy(tell)
    raise KeyboardInterrupt


def table(_: RunListener) -> None:
    for line in console.table(
        [("key", HOSTILE), ("long", "word " * 30), ("path", "/x" * 50)], indent=2
    ):
        console.result(line)


def tree(_: RunListener) -> None:
    leaf = console.Branch("long " * 30)
    for line in console.tree(console.Branch("root", [console.Branch(HOSTILE, [leaf]), leaf])):
        console.result(line)


SCENES: dict[str, Callable[[RunListener], None]] = {
    scene.__name__: scene for scene in (ends, asks, fails, table, tree)
}


@click.command()
@click.argument("scene", type=click.Choice(list(SCENES)))
@click.option("--json", "as_json", is_flag=True)
@click.option("--json-events", is_flag=True)
def draw(scene: str, as_json: bool, json_events: bool) -> None:
    drawn = scene in ("table", "tree")
    with RunListener([] if drawn else NAMES, as_json=as_json, json_events=json_events) as tell:
        SCENES[scene](tell)
    if "rich" in sys.modules and not console.draws_on(sys.stderr):
        console.result("rich was imported")


if __name__ == "__main__":
    guard.leave(guard.run(draw, sys.argv[1:]))
