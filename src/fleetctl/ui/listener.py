"""What becomes of the events of a run: the log file, and either JSON lines or text and progress."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, Self, TextIO, TypeVar

from fleetctl.model.events import Did, Ended, Event, Gathered, Noted, Planned, Stopping
from fleetctl.ui import console, documents, plan
from fleetctl.ui.console import printable

if TYPE_CHECKING:
    from fleetctl.ui.progress import ProgressDisplay

P = ParamSpec("P")
R = TypeVar("R")

_KEPT_LOGS = 20


class RunListener:
    """The listener of one run, to be called from any thread, and closed when the run has ended.

    On a terminal, stderr has a live display of what the nodes are doing; `close` removes it.
    """

    def __init__(
        self,
        nodes: Iterable[str],
        *,
        as_json: bool = False,
        json_events: bool = False,
        diff: bool = True,
    ) -> None:
        self._lock = threading.Lock()
        self._as_json = as_json
        self._json_events = json_events
        self._diff = diff
        self._display: ProgressDisplay | None = None
        if console.draws_on(sys.stderr) and not json_events:
            from fleetctl.ui.progress import ProgressDisplay

            self._display = ProgressDisplay(nodes)

    def __call__(self, event: Event) -> None:
        logging.getLogger(__name__).debug("%s", event)
        with self._lock:
            if self._json_events:
                console.result(documents.event_line(event))
                return
            if self._display:
                self._display.update(event)
            self._talk(event)
            if isinstance(event, Planned) and not self._as_json:
                self._show(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the live display. Must be called, or the terminal keeps its cursor hidden.

        It does not wait for a question that is still open: Ctrl-C ends that too.
        """
        if self._display:
            self._display.close()

    def pausing(self, question: Callable[P, R]) -> Callable[P, R]:
        """The same question, asked while nothing else is written to the terminal."""

        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._lock, self._hidden():
                return question(*args, **kwargs)

        return ask

    def _hidden(self) -> AbstractContextManager[None]:
        return self._display.hidden() if self._display else nullcontext()

    def _show(self, planned: Planned) -> None:
        with self._hidden():
            for line in plan.lines(planned.report, diff=self._diff):
                console.result(line)
            console.flush()  # a reader of stdout sees the plan before it is executed

    def _talk(self, event: Event) -> None:
        """Write a line for each thing that happened; the display has what is still going on."""
        match event:
            case Gathered(result) if not self._display:
                console.talk(f"{printable(result.target)}: {result.state}")
            case Did(node, title):
                done = console.styled("done", "added", sys.stderr)
                console.talk(f"{printable(node)}: {done}: {printable(title)}")
            case Noted(node, text):
                console.talk(f"{printable(node)}: {printable(text)}")
            case Ended(outcome):
                console.talk(f"{printable(outcome.target)}: {outcome.state}")
            case Stopping(hint):
                console.talk(hint)


def open_log(state: Path, command: str) -> Path:
    """Start the log file of a run, readable by its owner only, and delete the oldest ones.

    Raises OSError where it cannot be written.
    """
    folder = state / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: -_KEPT_LOGS + 1]:
        with suppress(OSError):
            old.unlink()
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    file = folder / f"{moment}-{command}.log"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    handler = _LogHandler(os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(name)s %(message)s"))
    for name in ("fleetctl", "paramiko"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
        logger.propagate = False
    return file


class _LogHandler(logging.StreamHandler[TextIO]):
    """A full disk ends the log, not the run, and is reported once."""

    _complete = True

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        if self._complete:
            self._complete = False
            console.complain("warning", f"the log of this run is incomplete: {sys.exc_info()[1]}")
