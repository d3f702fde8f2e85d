"""Ctrl-C once finishes what has begun, twice stops now and leaves the rest to the nodes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fleetctl.errors import Exit
from fleetctl.model.events import Listener, Stopping

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HINT = "finishing what has begun; once more stops now, and the nodes go back by themselves"


@contextmanager
def patient(stop: threading.Event, tell: Listener) -> Iterator[list[Exit]]:
    """Gives what was heard so far; the second signal does what the first does elsewhere."""
    heard: list[Exit] = []

    def handle(number: int, frame: FrameType | None) -> None:
        heard.append(Exit.INTERRUPTED if number == signal.SIGINT else Exit.TERMINATED)
        if len(heard) > 1:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
            return
        stop.set()
        # in a thread: whoever was interrupted may be telling something, and hold that lock
        threading.Thread(target=tell, args=(Stopping(_HINT),), daemon=True).start()

    # what was ignored when fleetctl was started stays so: nohup, or a job in the background
    listening = [each for each in _SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, handle) for each in listening}
    try:
        yield heard
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
