"""The user's ~/.ssh/config, with its includes in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_DEPTH = 16


def lines(file: Path | None = None, depth: int = 0) -> Iterator[str]:
    """The lines of a configuration; an `Include` is replaced by what it includes.

    The block that an `Include` stands in is opened again after it, since the included file may
    have opened others.
    """
    file = file or Path("~/.ssh/config").expanduser()
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return
    block = "Host *"
    for line in text.splitlines():
        keyword, words = _split(line)
        if keyword in ("host", "match"):
            block = line
        if keyword != "include":
            yield line
        elif depth < _DEPTH:
            for pattern in words:
                yield from _included(pattern, depth)
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


def _included(pattern: str, depth: int) -> Iterator[str]:
    path = Path(pattern).expanduser()
    folder = Path("/") if path.is_absolute() else Path("~/.ssh").expanduser()
    for file in sorted(folder.glob(str(path).lstrip("/"))):
        yield from lines(file, depth + 1)
