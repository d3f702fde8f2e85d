"""fleetctl, disturbed at a chosen moment of its talk with a node; the product has no hook for it.

Run as `python -m tests.disturbed JSON ARGUMENT…`, where JSON is a `Disturbance`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fleetctl.cli import main
from fleetctl.execute import transact
from fleetctl.model import options
from fleetctl.shell import transaction

Lines = Iterator[tuple[str, str]]

_STEP = "step() {\n"


@dataclass(frozen=True, slots=True)
class Disturbance:
    at: int = 0
    """The record, counted from 1, after which it happens; none with 0."""
    when: str = ""
    """The record after which it happens, the first such."""
    what: str = ""
    """Names of signals to ourselves, or `cut` for the connection."""
    step: int = 0
    """The step, counted from 1, at which the node's own shell does what `does` says."""
    does: str = ""
    timeouts: Mapping[str, Any] = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)
    """Text of the script, and what stands there instead."""
    heard: str = ""
    """A file that gets all records, a line each."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("tests.disturbed", json.dumps(dataclasses.asdict(self)))


def install(disturbance: Disturbance) -> None:
    _wrap_records(disturbance)
    _wrap_script(disturbance)
    timeouts: Any = partial(options.Timeouts, **disturbance.timeouts)
    options.Timeouts = timeouts  # type: ignore[misc]


def _wrap_records(disturbance: Disturbance) -> None:
    receive: Callable[[transact.Session], Lines] = transact.Session._receive
    count = 0
    before = set[str]()

    def received(self: transact.Session) -> Lines:
        nonlocal count
        for word, text in receive(self):
            count += 1
            line = f"{word} {text}".strip()
            if disturbance.heard:
                with Path(disturbance.heard).open("a") as file:
                    file.write(f"{line}\n")
            if count == disturbance.at or (line == disturbance.when and line not in before):
                _happen(disturbance.what, self)
            before.add(line)
            yield word, text

    transact.Session._receive = received  # type: ignore[method-assign]


def _happen(what: str, talk: transact.Session) -> None:
    if what != "cut":
        for name in what.split():
            os.kill(os.getpid(), signal.Signals[name])
            time.sleep(1)  # else two that are the same may count as one
        return
    connection: socket.socket = talk._process._channel.get_transport().sock  # type: ignore[attr-defined]
    # Linger of zero seconds: the node sees a reset, not an orderly end.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_RD)
    connection.close()


def _wrap_script(disturbance: Disturbance) -> None:
    script = transaction.script

    def changed(*arguments: Any) -> str:
        text = script(*arguments)
        for old, new in disturbance.replace.items():
            assert old in text, old
            text = text.replace(old, new)
        return at_step(text, disturbance.step, disturbance.does) if disturbance.step else text

    setattr(transact, "script", changed)  # noqa: B010


def at_step(script: str, step: int, does: str) -> str:
    """The script with something that happens on the node at the given step."""
    assert script.count(_STEP) == 1
    count = f"steps=$((${{steps:-0}} + 1)); [ $steps != {step} ] || {{ {does}; }}\n"
    return script.replace(_STEP, _STEP + count)


if __name__ == "__main__":
    install(Disturbance(**json.loads(sys.argv.pop(1))))
    main()
