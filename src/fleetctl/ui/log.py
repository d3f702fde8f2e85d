"""The log of a run: everything that was said and done, in a file for its owner only."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from fleetctl.model.events import Event

_KEPT = 20


def log(event: Event) -> None:
    """A listener."""
    logging.getLogger(__name__).debug("%s", event)


def open_log(state: Path, command: str) -> Path:
    """Begins the log of a run; the oldest ones go."""
    folder = state / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: -_KEPT + 1]:
        old.unlink(missing_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    file = folder / f"{moment}-{command}.log"
    stream = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(name)s %(message)s"))
    for name in ("fleetctl", "paramiko"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
        logger.propagate = False
    return file
