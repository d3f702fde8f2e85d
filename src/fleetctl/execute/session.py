"""A transaction under way: the controller's side of the talk with `transaction.sh`."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fleetctl.links import Process
from fleetctl.model.plan import Scripted
from fleetctl.shell.transaction import Patience, Transaction, script

_LOG = logging.getLogger(__name__)
_LONGEST_LINE = 2**16
_SLACK = 30


@dataclass(slots=True)
class Course:
    """How far a transaction has come, by what the node has said."""

    word: str = "lost"
    """The last word that decides; `lost` until there is one."""
    text: str = ""
    failed: Scripted | None = None
    why: str = ""
    said: list[str] = field(default_factory=list)


_DECIDING = ("locked", "lost", "changed", "untouched", "committed", "undone", "dirty", "recovered")


class Session:
    """Holds the node's lock from the script's first word until `release`, or until we are gone."""

    def __init__(self, process: Process, transaction: Transaction, patience: Patience) -> None:
        self.course = Course()
        self._process = process
        self._changes = {str(at): change for at, change in enumerate(transaction.changes)}
        self._patience = patience
        self._nonce = secrets.token_hex(16)
        self._over = threading.Event()
        self._lines = self._receive()
        process.send(script(transaction, self._nonce, patience).encode())

    def run(self, tell: Callable[[Scripted], None], judge: Callable[[], str | None]) -> Course:
        """Until the outcome is certain and the node waits, or has ended.

        `tell` hears of the changes that were made. `judge` is asked once the service was restarted,
        and says why it must not stay so.
        """
        course = self.course
        for word, text in self._lines:
            match word:
                case "step" if text == "locked":
                    threading.Thread(target=self._beat, daemon=True).start()
                case "did" if text in self._changes:
                    tell(self._changes[text])
                case "failed":
                    number, _, course.why = text.partition(" ")
                    course.failed = self._changes.get(number)
                    course.said.clear()
                case "|":
                    course.said.append(text)
                case "restarted":
                    course.why = judge() or ""
                    self._say("rollback" if course.why else "commit")
                case "holding" | "forgotten":
                    course.word = "held" if course.word == "lost" else course.word
                    break
                case _ if word in _DECIDING:
                    course.word, course.text = word, text
        return course

    def release(self) -> None:
        """The node is done; its lock goes."""
        self._say("release")
        for _ in self._lines:
            pass
        self._over.set()
        self._process.close()

    def _say(self, word: str) -> None:
        _LOG.debug("said %s", word)
        self._process.send(f"{word}\n".encode())

    def _beat(self) -> None:
        """The node takes silence for our death."""
        while not self._over.wait(self._patience.silent / 4):
            self._process.send(b"beat\n")

    def _receive(self) -> Iterator[tuple[str, str]]:
        """Words and what follows them, until the script ends or says nothing for too long."""
        mark = f"@@{self._nonce} ".encode()
        longest = max(self._patience.restart, self._patience.command) + _SLACK
        heard = b""
        deadline = time.monotonic() + longest
        while (left := deadline - time.monotonic()) > 0 and len(heard) < _LONGEST_LINE:
            received = self._process.receive(left)
            if received is None:
                return
            if received[1]:
                _LOG.debug("on standard error: %r", received[1])
            *lines, heard = (heard + received[0]).split(b"\n")
            for line in lines:
                if line.startswith(mark):
                    deadline = time.monotonic() + longest
                    said = line.removeprefix(mark).decode(errors="replace")
                    _LOG.debug("heard %s", said)
                    word, _, text = said.partition(" ")
                    yield word, text
