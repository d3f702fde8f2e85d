"""What a node keeps about fleetctl's own work: the log of its changes, and the lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from fleetctl.gather import Observer
from fleetctl.links import Link, answers, root_shell
from fleetctl.model.facts import Scope
from fleetctl.shell import Part, Record
from fleetctl.shell.survey import find_state

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_LOG = """{find_state}
[ ! -r "$state/log" ] || tail -n 200 "$state/log"
section kept; ls "$state/backups" 2>/dev/null"""
_HOLDER = '{find_state}; readlink "$state/lock" || true'
_UNLOCK = '{find_state}; rm -f "$state/lock"'


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log; `number` is that of its backup, or `-` where there is none (any more)."""

    number: str
    time: str
    owner: str
    outcome: str
    changes: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Lock:
    scope: Scope
    owner: str


def history(link: Link, observer: Observer) -> list[Entry]:
    said = answers(link.shell(), _parts(_LOG, *_SCOPES), observer.timeout)
    entries = [entry for scope in _SCOPES for entry in _entries(scope, said[scope])]
    return sorted(entries, key=lambda entry: entry.time)


def _entries(scope: Scope, record: Record) -> Iterator[Entry]:
    kept = record.section("kept").split()
    for line in record.text.splitlines():
        match line.split("\t"):
            case [number, time, owner, outcome, changes]:
                known = number if number in kept else "-"
                yield Entry(known, time, owner, outcome, changes, scope)


def locks(link: Link, observer: Observer) -> list[Lock]:
    said = answers(link.shell(), _parts(_HOLDER, *_SCOPES), observer.timeout)
    holders = ((scope, said[scope].text.strip()) for scope in _SCOPES)
    return [Lock(scope, text.rpartition(":")[2]) for scope, text in holders if text]


def unlock(link: Link, observer: Observer, lock: Lock) -> None:
    elevated = lock.scope == "system"
    shell = root_shell(link, observer.password, observer.timeout) if elevated else link.shell()
    answers(shell, _parts(_UNLOCK, lock.scope), observer.timeout)


def _parts(commands: str, *scopes: Scope) -> list[Part]:
    return [Part(each, commands.format(find_state=find_state(each))) for each in scopes]
