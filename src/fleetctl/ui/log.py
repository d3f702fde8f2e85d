"""The log of a run: everything that was said and done, in a file for its owner only."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from fleetctl.model.events import Event
from fleetctl.ui import console

_KEPT = 20


def log(event: Event) -> None:
    """A listener."""
    logging.getLogger(__name__).debug("%s", event)


class _Writer(logging.StreamHandler[TextIO]):
    """A full disk ends the log, not the run, and is said once."""

    _whole = True

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  so logging calls it
        if self._whole:
            self._whole = False
            console.complain("warning", f"the log of this run is not whole: {sys.exc_info()[1]}")


def open_log(state: Path, command: str) -> Path:
    """Begins the log of a run; the oldest ones go."""
    folder = state / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: -_KEPT + 1]:
        with suppress(OSError):
            old.unlink()
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    file = folder / f"{moment}-{command}.log"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    handler = _Writer(os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(name)s %(message)s"))
    for name in ("fleetctl", "paramiko"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
        logger.propagate = False
    return file
