"""What a node keeps about fleetctl's own work: the log of its changes, and the lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from fleetctl.gather import Observer
from fleetctl.links import Link
from fleetctl.links.elevate import root_shell
from fleetctl.links.exchange import answers
from fleetctl.model.facts import Scope
from fleetctl.shell import Part
from fleetctl.shell.survey import find_state

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_LOG = '{find_state}; [ ! -r "$state/log" ] || tail -n 200 "$state/log"'
_HOLDER = '{find_state}; readlink "$state/lock" || true'
_UNLOCK = '{find_state}; rm -f "$state/lock"'


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log; `number` is that of its backup, or `-` where nothing stayed."""

    number: str
    time: str
    owner: str
    outcome: str
    changes: str


@dataclass(frozen=True, slots=True)
class Lock:
    scope: Scope
    owner: str


def history(link: Link, observer: Observer) -> list[Entry]:
    said = answers(link.shell(), _parts(_LOG, *_SCOPES), observer.timeout).values()
    rows = (line.split("\t") for record in said for line in record.text.splitlines())
    return sorted((Entry(*row) for row in rows if len(row) == 5), key=lambda entry: entry.time)


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
