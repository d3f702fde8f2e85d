"""The script of a transaction: the values of one change of a node, before `transaction.sh`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from fleetctl.model.plan import (
    Forget,
    Recover,
    Restart,
    RunCommand,
    Scripted,
    Supervise,
    WriteFile,
)
from fleetctl.shell.script import ALIVE, PRELUDE, quote

_LIBRARY = Path(__file__).with_name("transaction.sh")


@dataclass(frozen=True, slots=True)
class Supervisor:
    """What runs the service: shell commands, each the body of a function."""

    prepare: str = ""
    """What all of them need first."""
    verify: str = "true"
    reload: str = "true"
    enable: str = "true"
    disable: str = "true"
    restart: str = "true"
    stop: str = "true"
    displace: str = "true"
    """Makes whatever else runs the server stop doing so; `give_back` undoes that."""
    give_back: str = "true"
    log: str = "true"


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. The node waits longer for a verdict than the controller takes to find it."""

    restart: int = 120
    command: int = 600
    healthy: float = 60
    stable: float = 3
    silent: int = 20
    """Without a heartbeat: the controller is gone, or stands still."""

    @property
    def verdict(self) -> int:
        return int(self.healthy + self.stable) + 60


@dataclass(frozen=True, slots=True)
class Transaction:
    state: str
    """The folder of its lock, journal and backups."""
    owner: str
    about: str
    changes: tuple[Scripted, ...] = ()
    """By the numbers that the script speaks of. Without one it only holds the lock."""
    as_root: bool = False
    home: str = ""
    user: str = ""
    """Of whoever is logged in, also where the session is root's."""
    port: int = 0
    """Of the service, once it has been changed."""
    active: bool = True
    """Whether the service runs before; if not, it is stopped again on the way back."""
    enabled: bool = True
    """Whether it starts at boot before."""
    supervisor: Supervisor = Supervisor()
    rival: str = ""
    """What `displace` stops, by a word with which `remove` finds it again."""

    @property
    def restarts(self) -> bool:
        return any(isinstance(change, Restart | Recover) for change in self.changes)


def script(transaction: Transaction, nonce: str, patience: Patience) -> str:
    """One compound command: a script that was cut off on its way never starts."""
    return "\n".join(
        (
            "fleetctl() {",
            PRELUDE,
            *_variables(transaction, nonce, patience),
            *_changes(transaction),
            *_service(transaction.supervisor),
            ALIVE,
            _LIBRARY.read_text(),
            "session",
            "}",
            "{ fleetctl 3<&0 </dev/null; exit 0; }",
            "",
        )
    )


def _variables(transaction: Transaction, nonce: str, patience: Patience) -> Iterator[str]:
    changes = transaction.changes
    files = [str(at) for at, change in enumerate(changes) if isinstance(change, WriteFile)]
    values = {
        "nonce": nonce,
        "state": transaction.state,
        "owner": _word(transaction.owner),
        "about": " ".join(transaction.about.split())[:500],
        "home": transaction.home,
        "user": transaction.user,
        "port": str(transaction.port),
        "active": "yes" if transaction.active else "no",
        "enabled": "yes" if transaction.enabled else "no",
        "files": " ".join(files),
        "operations": "yes" if any(_operations(changes)) else "",
        "restart_seconds": str(patience.restart),
        "command_seconds": str(patience.command),
        "verdict_seconds": str(patience.verdict),
        "silent_seconds": str(patience.silent),
        "manual": _manual(transaction.supervisor),
        "rival": transaction.rival,
    }
    return (f"{name}={quote(value)}" for name, value in values.items())


def _word(text: str) -> str:
    """For the target of the lock, in which a colon and a slash have a meaning."""
    return "".join(letter if letter.isalnum() or letter in "@._-" else "-" for letter in text)


def _manual(supervisor: Supervisor) -> str:
    commands = [supervisor.reload, supervisor.restart]
    return "\n".join(f"$ {command}" for command in commands if command != "true")


def _changes(transaction: Transaction) -> Iterator[str]:
    """What each change needs, under its number, and the order in which they are made."""
    for at, change in enumerate(transaction.changes):
        if isinstance(change, WriteFile):
            yield from _file(at, change, transaction.home)
        elif isinstance(change, RunCommand):
            yield f"command_{at}() {{ /bin/sh -c {quote(change.commands)}; }}"
    yield "operate() {\n:"
    yield from (f"perform {each} || return" for each in _operations(transaction.changes))
    yield "}"


def _file(at: int, change: WriteFile, home: str) -> Iterator[str]:
    path = change.path.replace("~", home, 1)
    values = {
        "path": path,
        "mode": f"{change.mode:o}",
        "entry": hashlib.sha256(path.encode()).hexdigest()[:16],
        "is": "absent" if change.before is None else "there",
        "will": "absent" if change.after is None else "there",
    }
    yield " ".join(f"{name}_{at}={quote(value)}" for name, value in values.items())
    for name, text in (("old", change.before), ("new", change.after)):
        yield f"{name}_{at}() {{ printf {printf_format(text or '')}; }}"


def _operations(changes: tuple[Scripted, ...]) -> Iterator[str]:
    """Numbers of changes, or `-`, with calls of functions of `transaction.sh`.

    They come in the order of the plan; a definition is checked and read when all of it is in place.
    """
    defining = [change for change in changes if isinstance(change, WriteFile) and change.defines]
    for at, change in enumerate(changes):
        match change:
            case WriteFile():
                yield f"{at} {'discard' if change.after is None else 'replace'} {at}"
                if defining and change is defining[-1]:
                    yield from ("- verify", "- reload")
            case RunCommand():
                yield f"{at} run {at}"
            case Supervise():
                yield f"{at} {change.verb}"
            case Restart():
                yield f"{at} restart"
            case Forget():
                yield f"{at} forget"


def _service(supervisor: Supervisor) -> Iterator[str]:
    yield supervisor.prepare
    for name in (field.name for field in fields(supervisor) if field.name != "prepare"):
        yield f"service_{name}() {{\n{getattr(supervisor, name)}\n}}"


def printf_format(text: str) -> str:
    """Any bytes as a quoted format of printf, which is the same in every shell."""
    data = text.encode("utf-8", "surrogateescape")
    return "'" + "".join(_FORMAT[byte] for byte in data) + "'"


_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"\\%'-")
_FORMAT = [chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in range(256)]
_FORMAT[ord("\n")] = "\\n"
_FORMAT[ord("%")] = "%%"
