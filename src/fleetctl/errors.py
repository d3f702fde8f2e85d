"""The table of exit codes, and the one exception whose message users see."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Every exit code of the program; docs/exit-codes.md is this table."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "in the desired state"
    BUG = 1, "a bug in fleetctl; a report is printed, the traceback with --debug"
    USAGE = 2, "wrong usage, or the inventory or a playbook is invalid; nothing was contacted"
    DIFFERS = 3, "differs from what is desired, and nothing was done"
    UNREACHABLE = 4, "a host is unreachable, the rest is fine"
    FAILED = 5, "a host failed, or a result could not be written"
    DIRTY = 6, "a host failed and its rollback failed: it needs a person"
    LOCKED = 7, "a node is locked by another run"
    REFUSED = 8, "refused for safety: a host key, or an exposed server"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"
    PIPE_CLOSED = 141, "the reader of the output closed the pipe"
    TERMINATED = 143, "terminated (SIGTERM)"

    @classmethod
    def worst(cls, codes: Iterable[Exit]) -> Exit:
        """The exit code of several results together."""
        return min(codes, key=_PRECEDENCE.index, default=cls.OK)


_PRECEDENCE = (
    Exit.BUG,
    Exit.USAGE,
    Exit.DIRTY,
    Exit.INTERRUPTED,
    Exit.TERMINATED,
    Exit.PIPE_CLOSED,
    Exit.REFUSED,
    Exit.FAILED,
    Exit.UNREACHABLE,
    Exit.LOCKED,
    Exit.DIFFERS,
    Exit.OK,
)


class FleetError(Exception):
    """Something the user can act on: what happened, and what to do about it."""

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: Exit = Exit.FAILED
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def details(self) -> list[str]:
        """Lines to show before the message, for an error that has several parts."""
        return []

    def document(self) -> dict[str, object]:
        """The error as JSON."""
        return {"message": self.message, "hint": self.hint, "exit_code": int(self.exit_code)}
