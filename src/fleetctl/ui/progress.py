"""What happens right now, on standard error: lines, and on a terminal a living one below them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from fleetctl.model.events import Did, Doing, Ended, Event, Looked, Noted, Pulling, Stopping
from fleetctl.ui import console

_SHOWN = 3
_BAR = 20


class Progress:
    """A listener, to one event at a time."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._waiting = dict.fromkeys(nodes, "")
        self._total = len(self._waiting)
        self._doing: dict[str, str] = {}
        simple = os.environ.get("TERM", "dumb") == "dumb"
        self._living = sys.stderr is not None and sys.stderr.isatty() and not simple
        self._show()

    def tell(self, event: Event) -> None:
        self._hear(event)
        self._show()

    def _hear(self, event: Event) -> None:
        match event:
            case Looked(result):
                self._waiting.pop(result.node, None)
                if not self._living:
                    self._line(f"{result.node}: {result.state}")
            case Doing(node, text):
                self._doing[node] = text
            case Pulling(node, model, completed, total):
                self._doing[node] = f"{model} {_bar(completed, total)}"
            case Did(node, title):
                self._doing[node] = "working"
                word = console.styled("done", "added", sys.stderr)
                self._line(f"{node}: {word}: {console.printable(title)}")
            case Noted(node, text):
                self._line(f"{node}: {console.printable(text)}")
            case Ended(outcome):
                self._doing.pop(outcome.node, None)
                self._line(f"{outcome.node}: {outcome.state}")
            case Stopping(hint):
                self._line(hint)

    def _line(self, text: str) -> None:
        if self._living:
            console.live("")
        console.talk(text)

    def _show(self) -> None:
        """Overwrites itself; nothing is left of it at the end."""
        if not self._living:
            return
        names = list(self._waiting)
        busy = [f"{node}: {text}" for node, text in self._doing.items()]
        if names:
            done = self._total - len(names)
            console.live(f"{done}/{self._total} nodes looked at, waiting for {_first(names)}")
        else:
            console.live(_first(busy))


def _first(texts: list[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{', '.join(texts[:_SHOWN])}{more}"


def _bar(completed: int, total: int) -> str:
    if not total:
        return "…"
    filled = _BAR * completed // total
    share = f"{100 * completed // total}% of {total / 1e9:.1f} GB"
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {share}"
