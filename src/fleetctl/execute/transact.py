"""A transaction: a plan's changes in one scope, and the conversation with `transaction.sh`."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from fleetctl import services
from fleetctl.links import Process
from fleetctl.model import address
from fleetctl.model.facts import Scope
from fleetctl.model.fleet import Target
from fleetctl.model.options import Timeouts
from fleetctl.model.plan import Plan, Recover, Stage, TransactionChange
from fleetctl.shell import SYSTEMS, Os, survey
from fleetctl.shell.transaction import Supervisor, Transaction, script

_LOG = logging.getLogger(__name__)
_LONGEST_LINE = 2**16
_SLACK = 30

Outcome = Literal[
    "disconnected", "locked", "preempted", "changed", "untouched", "committed", "held", "undone",
    "dirty", "recovered",
]  # fmt: skip
"""`disconnected` until the node has said another; `held` where there was nothing but the lock."""


def transactions(target: Target, plan: Plan, owner: str) -> Iterator[Transaction]:
    """The scope of the service comes last, and always: its lock is held until the target is done.

    An interrupted run is undone first and alone, since the plan was made before that.
    """
    service, host = plan.service, plan.facts.host
    changes = tuple(
        change for change in plan.at(Stage.TRANSACTION) if isinstance(change, TransactionChange)
    )
    undone = tuple(change for change in changes if isinstance(change, Recover))
    last: Scope = service.scope if service else "user"
    scopes: tuple[Scope, Scope] = ("user", "system") if last == "system" else ("system", "user")
    os: Os = next((os for os, system in SYSTEMS.items() if system == host.system), "linux")
    for scope in scopes:
        chosen = tuple(change for change in undone or changes if change.scope == scope)
        if not chosen and scope != last:
            continue
        yield Transaction(
            state=host.expanded(survey.state_folder(target, scope, os)),
            owner=owner,
            about="; ".join(change.title for change in chosen),
            changes=chosen,
            scope=scope,
            home=host.home,
            user=host.user,
            port=address.place_of(target.node.listens)[1] if target.node else 0,
            active=service is not None and (service.active or service.starting),
            enabled=service is not None and service.enabled,
            supervisor=services.supervisor(service, plan.rival) if service else Supervisor(),
            rival=plan.rival.mode if plan.rival else "",
        )


@dataclass(slots=True)
class TransactionResult:
    """How far a transaction has come, by what the node has printed."""

    outcome: Outcome = "disconnected"
    detail: str = ""
    failed: TransactionChange | None = None
    why: str = ""
    output: list[str] = field(default_factory=list)


class Session:
    """Holds the node's lock from the script's first word until `release`, or until we are gone."""

    def __init__(self, process: Process, transaction: Transaction, timeouts: Timeouts) -> None:
        self.result = TransactionResult()
        self._process = process
        self._changes = {str(at): change for at, change in enumerate(transaction.changes)}
        self._timeouts = timeouts
        self._nonce = secrets.token_hex(16)
        self._over = threading.Event()
        self._lines = self._receive()
        process.send(script(transaction, self._nonce, timeouts).encode())

    def run(
        self, tell: Callable[[TransactionChange], None], judge: Callable[[], str | None]
    ) -> TransactionResult:
        """Until the outcome is certain and the node waits, or has ended.

        `tell` is called for each change that was made; `judge` once after the restart, and gives
        the reason to roll back, if there is one.
        """
        result = self.result
        for word, text in self._lines:
            match word:
                case "step" if text == "locked":
                    threading.Thread(target=self._beat, daemon=True).start()
                case "did" if text in self._changes:
                    tell(self._changes[text])
                case "failed":
                    number, _, result.why = text.partition(" ")
                    result.failed = self._changes.get(number)
                    result.output.clear()
                case "|":
                    result.output.append(text)
                case "restarted":
                    result.why = judge() or ""
                    self._say("rollback" if result.why else "commit")
                case "holding" | "forgotten":
                    if result.outcome == "disconnected":
                        result.outcome = "held"
                    break
                case _ if word in get_args(Outcome):
                    result.outcome, result.detail = cast("Outcome", word), text
        return result

    def release(self) -> None:
        """The target is done, and its lock is removed."""
        self._say("release")
        for _ in self._lines:
            pass
        self._over.set()
        self._process.close()

    def _say(self, word: str) -> None:
        _LOG.debug("sent %s", word)
        self._process.send(f"{word}\n".encode())

    def _beat(self) -> None:
        """The node takes silence for our death."""
        while not self._over.wait(self._timeouts.silent / 4):
            self._process.send(b"beat\n")

    def _receive(self) -> Iterator[tuple[str, str]]:
        """Words with their text, until the script ends or is silent for too long."""
        mark = f"@@{self._nonce} ".encode()
        longest = max(self._timeouts.restart, self._timeouts.command) + _SLACK
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
                    text = line.removeprefix(mark).decode(errors="replace")
                    _LOG.debug("received %s", text)
                    word, _, rest = text.partition(" ")
                    yield word, rest
