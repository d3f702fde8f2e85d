"""The lines of ~/.ssh/config with its includes expanded, and the host aliases in it."""

import re
from collections.abc import Iterator
from pathlib import Path

_DEPTH = 16
_UNUSABLE = (OSError, RuntimeError, ValueError)
"""What pathlib raises for a missing file, home or user, and for an invalid pattern."""


def lines(file: Path | None = None, within: tuple[Path, ...] = ()) -> Iterator[str]:
    """The lines of a configuration; an `Include` is replaced by the lines of its files.

    After an `Include` the current block is opened again, since the included file may have opened
    others. Unreadable files and files that include themselves are skipped.
    """
    try:
        path = (file or Path("~/.ssh/config").expanduser()).resolve()
        if path in within or len(within) > _DEPTH or not path.is_file():
            return
        text = path.read_text(errors="replace")
    except _UNUSABLE:
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
    """Hosts with another `HostName`: only ssh can resolve these names, other clients cannot."""
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
    except _UNUSABLE:
        return []
