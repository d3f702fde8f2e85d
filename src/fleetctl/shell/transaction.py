"""The script of a transaction: the values of one change of a machine, and `transaction.sh`."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields

from fleetctl.model.facts import Scope
from fleetctl.model.options import Timeouts
from fleetctl.model.plan import (
    Forget,
    Recover,
    Restart,
    RunCommand,
    ServiceAction,
    TransactionChange,
    WriteFile,
)
from fleetctl.shell.protocol import COMMON, LOCK, library, quote

_LIBRARY = library(__file__, "transaction.sh")


@dataclass(frozen=True, slots=True)
class Supervisor:
    """How the service manager is told: shell commands, each the body of a function."""

    library: str = ""
    """Shell functions that they use."""
    verify: str = "true"
    reload: str = "true"
    enable: str = "true"
    disable: str = "true"
    restart: str = "true"
    stop: str = "true"
    displace: str = "true"
    """Stops what else runs the server; `give_back` undoes that."""
    give_back: str = "true"
    log: str = "true"
    manual: tuple[str, ...] = ()
    """Commands for a person to run when a rollback has failed."""


@dataclass(frozen=True, slots=True)
class Transaction:
    state: str
    """The folder of its lock, journal and backups."""
    owner: str
    about: str
    changes: tuple[TransactionChange, ...] = ()
    """The script refers to them by their index. Without any it only holds the lock."""
    scope: Scope = "user"
    home: str = ""
    user: str = ""
    """The user who logged in, also where the session is root's."""
    port: int = 0
    """Of the service, once it has been changed."""
    active: bool = True
    """Whether the service was running; if not, a rollback stops it again."""
    enabled: bool = True
    """Whether it was started at boot."""
    supervisor: Supervisor = Supervisor()
    rival: str = ""
    """The mode of the service that `displace` stops, by which `remove` finds it again."""

    @property
    def restarts(self) -> bool:
        return any(isinstance(change, Restart | Recover) for change in self.changes)


def script(transaction: Transaction, nonce: str, timeouts: Timeouts) -> str:
    """One compound command: a truncated script never starts."""
    return "\n".join(
        (
            "fleetctl() {",
            COMMON,
            *_variables(transaction, nonce, timeouts),
            *_changes(transaction),
            *_service(transaction.supervisor),
            LOCK,
            _LIBRARY,
            "session",
            "}",
            "{ fleetctl 3<&0 </dev/null; exit 0; }",
            "",
        )
    )


def _variables(transaction: Transaction, nonce: str, timeouts: Timeouts) -> Iterator[str]:
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
        "restart_seconds": str(timeouts.restart),
        "command_seconds": str(timeouts.command),
        "verdict_seconds": str(timeouts.verdict),
        "silent_seconds": str(timeouts.silent),
        "manual": "\n".join(f"$ {command}" for command in transaction.supervisor.manual),
        "rival": transaction.rival,
    }
    return (f"{name}={quote(value)}" for name, value in values.items())


def _word(text: str) -> str:
    """For the target of the lock, where a colon and a slash have a meaning."""
    return "".join(letter if letter.isalnum() or letter in "@._-" else "-" for letter in text)


def _changes(transaction: Transaction) -> Iterator[str]:
    """What each change needs, under its index, and the order in which they are made."""
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


def _operations(changes: tuple[TransactionChange, ...]) -> Iterator[str]:
    """Indexes of changes, or `-`, with calls of functions of `transaction.sh`.

    In the order of the plan; a definition is verified and reloaded when all its files are written.
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
            case ServiceAction():
                yield f"{at} {change.action}"
            case Restart():
                yield f"{at} restart"
            case Forget():
                yield f"{at} forget"


_NOT_COMMANDS = ("library", "manual")


def _service(supervisor: Supervisor) -> Iterator[str]:
    yield supervisor.library
    for name in (each.name for each in fields(supervisor) if each.name not in _NOT_COMMANDS):
        yield f"service_{name}() {{\n{getattr(supervisor, name)}\n}}"


def printf_format(text: str) -> str:
    """Any bytes as a quoted format of printf, which every shell reads alike."""
    data = text.encode("utf-8", "surrogateescape")
    return "'" + "".join(_FORMAT[byte] for byte in data) + "'"


_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"\\%'-")
_FORMAT = [chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in range(256)]
_FORMAT[ord("\n")] = "\\n"
_FORMAT[ord("%")] = "%%"
