"""The script of a transaction: the values of one change of a node, before `transaction.sh`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from fleetctl.shell.script import PRELUDE, quote

_LIBRARY = Path(__file__).with_name("transaction.sh")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as the plan saw it and as it shall be; None where there is none."""

    path: str
    before: str | None
    after: str | None
    mode: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A call of a function of `transaction.sh`; `change` is its number in the plan, if any."""

    call: str
    change: int | None = None


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
    home: str = ""
    user: str = ""
    """Of whoever is logged in, also where the session is root's."""
    port: int = 0
    """Of the service, once it has been changed."""
    active: bool = True
    """Whether the service runs before; if not, it is stopped again on the way back."""
    files: tuple[FileChange, ...] = ()
    commands: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    supervisor: Supervisor = Supervisor()
    rival: str = ""
    """What `displace` stops, by a word with which `remove` finds it again."""


def script(transaction: Transaction, nonce: str, patience: Patience) -> str:
    """One compound command: a script that was cut off on its way never starts."""
    return "\n".join(
        (
            "fleetctl() {",
            PRELUDE,
            *_variables(transaction, nonce, patience),
            *_files(transaction.files),
            *_functions(transaction),
            _LIBRARY.read_text(),
            "session",
            "}",
            "{ fleetctl 3<&0 </dev/null; exit 0; }",
            "",
        )
    )


def _variables(transaction: Transaction, nonce: str, patience: Patience) -> Iterator[str]:
    values = {
        "nonce": nonce,
        "state": transaction.state,
        "owner": _word(transaction.owner),
        "about": " ".join(transaction.about.split())[:500],
        "home": transaction.home,
        "user": transaction.user,
        "port": str(transaction.port),
        "active": "yes" if transaction.active else "no",
        "files": " ".join(str(at) for at in range(len(transaction.files))),
        "operations": str(len(transaction.operations) or ""),
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


def _files(files: tuple[FileChange, ...]) -> Iterator[str]:
    for at, file in enumerate(files):
        values = {
            "path": file.path,
            "mode": f"{file.mode:o}",
            "entry": hashlib.sha256(file.path.encode()).hexdigest()[:16],
            "is": "absent" if file.before is None else "there",
            "will": "absent" if file.after is None else "there",
        }
        yield " ".join(f"{name}_{at}={quote(value)}" for name, value in values.items())
        for name, text in (("old", file.before), ("new", file.after)):
            yield f"{name}_{at}() {{ printf {printf_format(text or '')}; }}"


def _functions(transaction: Transaction) -> Iterator[str]:
    supervisor = transaction.supervisor
    yield supervisor.prepare
    for name in (field.name for field in fields(supervisor) if field.name != "prepare"):
        yield f"service_{name}() {{\n{getattr(supervisor, name)}\n}}"
    for at, commands in enumerate(transaction.commands):
        yield f"command_{at}() {{ /bin/sh -c {quote(commands)}; }}"
    yield "operate() {\n:"
    for operation in transaction.operations:
        number = "-" if operation.change is None else operation.change
        yield f"perform {number} {operation.call} || return"
    yield "}"


def printf_format(text: str) -> str:
    """Any bytes as a quoted format of printf, which is the same in every shell."""
    data = text.encode("utf-8", "surrogateescape")
    return "'" + "".join(_FORMAT[byte] for byte in data) + "'"


_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"\\%'-")
_FORMAT = [chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in range(256)]
_FORMAT[ord("\n")] = "\\n"
_FORMAT[ord("%")] = "%%"
