"""What is wrong, or doubtful, with a file, and the error that carries all of it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetctl.errors import Exit, FleetError

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


@dataclass(frozen=True, slots=True)
class Position:
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One place, what is wrong there, and what would be right."""

    where: Path
    what: str
    right: str | None = None
    at: Position | None = None

    def line(self, file: str, kind: str = "") -> str:
        """`file:line:column: path: what is wrong; what would be right`."""
        at = f"{self.at.line}:{self.at.column}: " if self.at else " "
        path = f"{self.path}: " if self.where else ""
        right = f"; {self.right}" if self.right else ""
        return f"{file}:{at}{kind}{path}{self.what}{right}"

    @property
    def path(self) -> str:
        return ".".join(map(str, self.where))

    def document(self) -> dict[str, object]:
        return {
            "line": self.at and self.at.line,
            "column": self.at and self.at.column,
            "path": self.path,
            "what": self.what,
            "right": self.right,
        }


class InvalidFile(FleetError):
    """A file of the user's cannot be used; `problems` says why."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        super().__init__(f"{file}: {count}", exit_code=Exit.USAGE)
        self.file = file
        self.problems = tuple(problems)

    def details(self) -> list[str]:
        return [problem.line(self.file) for problem in self.problems]

    def document(self) -> dict[str, object]:
        return {
            **super().document(),
            "file": self.file,
            "problems": [problem.document() for problem in self.problems],
        }


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What would be right instead of an unknown name."""
    import difflib  # slow to load, and only needed when something is wrong

    names = sorted(known)
    if near := difflib.get_close_matches(word, names, n=3, cutoff=0.65):
        return f"did you mean {' or '.join(sorted(near))}?"
    if not names:
        return "there is none to choose from"
    shown = ", ".join(names[:12])
    return f"known: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
