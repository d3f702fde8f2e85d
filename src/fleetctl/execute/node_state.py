"""What fleetctl keeps on a node about its own work: the log of its changes, and the lock."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetctl.gather import Access
from fleetctl.links import Link, answers, root_shell
from fleetctl.model.facts import Answer, Answers, Scope
from fleetctl.model.fleet import Target
from fleetctl.shell import NODE_STATE, survey


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A line of the log; `number` is that of its backup, or `-` if it has none (any more)."""

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


_NOTHING = Answer(0, b"")
"""From a system where fleetctl keeps nothing."""


def history(link: Link, target: Target, access: Access) -> list[HistoryEntry]:
    said = _ask(link, target, access, "ask_log")
    found = ((scope, said.get(f"- {scope}", _NOTHING)) for scope in survey.SCOPES)
    entries = [entry for scope, answer in found for entry in _entries(scope, answer)]
    return sorted(entries, key=lambda entry: entry.time)


def _entries(scope: Scope, answer: Answer) -> Iterator[HistoryEntry]:
    kept = answer.section("backups").split()
    for line in answer.text.splitlines():
        match line.split("\t"):
            case [number, time, owner, outcome, changes]:
                known = number if number in kept else "-"
                yield HistoryEntry(known, time, owner, outcome, changes, scope)


def locks(link: Link, target: Target, access: Access) -> list[Lock]:
    said = _ask(link, target, access, "ask_lock")
    holders = ((scope, said.get(f"- {scope}", _NOTHING).text.strip()) for scope in survey.SCOPES)
    return [Lock(scope, text.rpartition(":")[2]) for scope, text in holders if text]


def unlock(link: Link, target: Target, access: Access, lock: Lock) -> None:
    asked = survey.state_questions(target, "-", "remove_lock", lock.scope, NODE_STATE)
    as_root = lock.scope == "system"
    shell = root_shell(link, access.sudo_password, access.timeout) if as_root else link.shell()
    answers(shell, asked, access.timeout)


def _ask(link: Link, target: Target, access: Access, call: str) -> Answers:
    asked = [
        question
        for scope in survey.SCOPES
        for question in survey.state_questions(target, "-", call, scope, NODE_STATE)
    ]
    return answers(link.shell(), asked, access.timeout)
