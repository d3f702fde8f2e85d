"""The user's ~/.ssh/config, with its includes in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_DEPTH = 16
_NOWHERE = (OSError, RuntimeError, ValueError)
"""What pathlib raises where there is no such file, no home, no such user, no pattern."""


def lines(file: Path | None = None, within: tuple[Path, ...] = ()) -> Iterator[str]:
    """The lines of a configuration; an `Include` is replaced by what it includes.

    The block that an `Include` stands in is opened again after it, since the included file may
    have opened others. What cannot be read says nothing, and no file includes itself.
    """
    try:
        path = (file or Path("~/.ssh/config").expanduser()).resolve()
        if path in within or len(within) > _DEPTH or not path.is_file():
            return
        text = path.read_text(errors="replace")
    except _NOWHERE:
        return
    block = "Host *"
    for line in text.splitlines():
        keyword, words = _split(line)
        if keyword in ("host", "match"):
            block = line
        if keyword != "include":
            yield line
        else:
            for included in (file for pattern in words for file in _included(pattern)):
                yield from lines(included, (*within, path))
            yield block


def aliases() -> frozenset[str]:
    """Names with a `HostName` of their own: they mean something to ssh, and nothing to others."""
    found: set[str] = set()
    names: list[str] = []
    for keyword, words in map(_split, lines()):
        match keyword:
            case "host":
                names = [word for word in words if not re.search(r"[*?!]", word)]
            case "match":
                names = []
            case "hostname" if words:
                found.update(name for name in names if name.lower() != words[0].lower())
    return frozenset(found)


def _split(line: str) -> tuple[str, list[str]]:
    keyword, _, value = re.sub(r"\s*=\s*|\s+", " ", line.strip(), count=1).partition(" ")
    return keyword.lower(), value.replace('"', "").split()


def _included(pattern: str) -> list[Path]:
    try:
        path = Path(pattern).expanduser()
        folder = Path("/") if path.is_absolute() else Path("~/.ssh").expanduser()
        return sorted(folder.glob(str(path).lstrip("/")))
    except _NOWHERE:
        return []
