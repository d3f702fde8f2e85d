"""The first Ctrl-C finishes what has begun; the second stops now, and the nodes roll back."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fleetctl.errors import Exit
from fleetctl.model.events import Listener, Stopping

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HINT = "finishing what has begun; repeat to stop now, and the nodes roll back automatically"


@contextmanager
def stopping_gracefully(stop: threading.Event, tell: Listener) -> Iterator[list[Exit]]:
    """Gives the signals received so far; the second one gets the handler of before."""
    received: list[Exit] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(Exit.INTERRUPTED if number == signal.SIGINT else Exit.TERMINATED)
        if len(received) > 1:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
            return
        stop.set()
        # in a thread: the interrupted code may hold the listener's lock
        threading.Thread(target=tell, args=(Stopping(_HINT),), daemon=True).start()

    # a signal that was ignored at the start stays so: nohup, or a background job
    listening = [each for each in _SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, handle) for each in listening}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
