"""The live display on stderr: a line for each busy node, with a bar for transfers.

This module imports rich; it is loaded only where stderr is a terminal.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, ProgressColumn, Task, TaskID
from rich.progress import Progress as Rows
from rich.table import Column
from rich.text import Text

from fleetctl.model.events import Did, Doing, Ended, Event, Gathered, Progress
from fleetctl.ui.console import on_terminal, printable

_MAX_LINES = 5
_MAX_NAMES = 3
_BAR_WIDTH = 20
_MIN_WIDTH_FOR_BAR = 60
_FACTS = "facts of all nodes"
"""The line that stands for every node whose facts are still awaited."""


class ProgressDisplay:
    """Shown while a node is busy, below what is written to stderr; nothing of it remains.

    The caller lets only one thread at a time use it. `close` may come from any thread.
    """

    def __init__(self, nodes: Iterable[str]) -> None:
        assert sys.stderr is not None
        self._terminal = on_terminal(cast("TextIO", _Stderr(sys.stderr)), soft_wrap=True)
        self._rows = Rows(_Label(), _Bar(self._terminal), _Amount(), console=self._terminal)
        self._ids: dict[str, TaskID] = {}
        self._drawing = threading.Lock()
        self._live: Live | None = None
        self._closed = False
        self._waiting = dict.fromkeys(nodes)
        self._total = len(self._waiting)
        self._show_waiting()
        self._draw()

    def update(self, event: Event) -> None:
        match event:
            case Gathered(result):
                self._waiting.pop(result.target, None)
                self._show_waiting()
            case Doing(node, text):
                self._set(node, text)
            case Progress(target, what, done, total, unit):
                self._set(target, what, done, total, unit)
            case Did(node):
                self._set(node, "working")
            case Ended(outcome):
                self._remove(outcome.target)
        self._draw()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the terminal to others for a while."""
        with self._drawing:
            self._stop()
        try:
            yield
        finally:
            self._draw()

    def close(self) -> None:
        """Nothing is drawn any more, whatever threads that are still running report."""
        with self._drawing:
            self._closed = True
            self._stop()

    def _show_waiting(self) -> None:
        if not self._waiting:
            self._remove(_FACTS)
            return
        names = ", ".join(list(self._waiting)[:_MAX_NAMES])
        more = len(self._waiting) - _MAX_NAMES
        text = f"gathering facts from {names}" + (f" and {more} more" if more > 0 else "")
        self._set(_FACTS, text, self._total - len(self._waiting), self._total, "nodes")

    def _set(self, key: str, text: str, done: int = 0, total: int = 0, unit: str = "") -> None:
        label = printable(text if key == _FACTS else f"{key}: {text}")
        if key not in self._ids:
            self._ids[key] = self._rows.add_task("", total=None, unit="")
        self._rows.update(self._ids[key], description=label, completed=done, total=total, unit=unit)

    def _remove(self, key: str) -> None:
        if key in self._ids:
            self._rows.remove_task(self._ids.pop(key))

    def _draw(self) -> None:
        """Start drawing if there is something to draw and stop if not. A thread of rich redraws."""
        with self._drawing:
            if not self._ids:
                self._stop()
            elif self._live is None and not self._closed:
                # a new one each time: a Live that is started again erases lines above itself
                self._live = Live(
                    console=self._terminal,
                    get_renderable=self._lines,
                    transient=True,
                    redirect_stdout=False,
                )
                self._live.start(refresh=True)

    def _lines(self) -> RenderableType:
        """As many lines as fit, and how many more nodes are busy."""
        tasks = self._rows.tasks
        fitting = max(1, min(_MAX_LINES, self._terminal.height - 2))
        rows = self._rows.make_tasks_table(tasks[:fitting])
        more = len(tasks) - fitting
        return Group(rows, Text(f"and {more} more")) if more > 0 else rows

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


class _Label(ProgressColumn):
    """What a node does; cut where a line is too long, which the other columns never are."""

    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


class _Bar(BarColumn):
    """Only for what has a known size, and where there is room for it."""

    def __init__(self, terminal: Console) -> None:
        super().__init__(
            _BAR_WIDTH,
            style="bright_black",
            complete_style="green",
            finished_style="green",
            table_column=Column(no_wrap=True),
        )
        self._terminal = terminal

    def __call__(self, task: Task) -> RenderableType:
        has_room = self._terminal.width >= _MIN_WIDTH_FOR_BAR
        return self.render(task) if task.total and has_room else ""


class _Amount(ProgressColumn):
    """`1.2/4.7 GB` or `3/5 nodes`."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True))
        self._bytes = DownloadColumn()

    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        if not task.total:
            return Text()
        if unit == "B":
            return Text(self._bytes.render(task).plain)
        return Text(f"{task.completed:.0f}/{task.total:.0f} {unit}")


class _Stderr(io.TextIOBase):
    """Standard error as it was at the start, where a terminal that has gone away is no failure."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()
