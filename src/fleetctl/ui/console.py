"""stdout carries the result, stderr the talk; neither ever carries raw control characters."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

FORMAT = 1
"""Version of the JSON documents."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_STYLES = {
    "error": "31;1",
    "warning": "35",  # yellow, like cyan, cannot be read on white
    "hint": "1",
    "faint": "2",
    "strong": "1",
    "added": "32",
    "removed": "31",
}


def result(text: str) -> None:
    """A line of what the user asked for; not being able to write it is a failure."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    sys.stdout.write(f"{text}\n")


def flush() -> None:
    """Whatever was a result until now can be read."""
    if sys.stdout is not None:
        sys.stdout.flush()


def talk(text: str) -> None:
    """A line beside it: warnings, hints, progress. Nobody may be listening."""
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


def live(text: str) -> None:
    """A line that the next one overwrites, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"\r\x1b[K{printable(text)[: width - 1]}")
            sys.stderr.flush()


def document(payload: Mapping[str, object]) -> None:
    """The result as one JSON document, whatever the terminal's width."""
    foreign_document({"format": FORMAT, **payload})


def foreign_document(payload: Mapping[str, object]) -> None:
    """A JSON document whose format is not ours to number."""
    result(json.dumps(payload, indent=2))


def columns(rows: Iterable[Sequence[str]], indent: int = 0) -> list[str]:
    """Rows as lines whose cells stand below each other."""
    table = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        " " * indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def printable(text: str) -> str:
    """What cannot be printed is shown as its escape, so that no text can drive the terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def styled(text: str, style: str, stream: TextIO | None) -> str:
    """Coloured when the stream is a terminal that wants it."""
    if stream is None or not stream.isatty():
        return text
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def complain(kind: str, text: str, hint: str | None = None) -> None:
    """An error or a warning, and what to do about it."""
    talk(f"{styled(kind, kind, sys.stderr)}: {printable(text)}")
    if hint:
        talk(f"{styled('hint', 'hint', sys.stderr)}: {printable(hint)}")
