"""Which names the user's ~/.ssh/config gives to other machines.

Only for a warning: such a name means something to ssh and nothing to the gateway. Connecting
resolves the file in full, elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def aliases(file: Path | None = None) -> frozenset[str]:
    """Names with a `HostName` of their own; patterns are no names."""
    return frozenset(_aliases(file or Path("~/.ssh/config").expanduser(), depth=0))


def _aliases(file: Path, depth: int) -> Iterator[str]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except (OSError, RuntimeError):
        return
    names: list[str] = []
    for line in lines:
        keyword, _, value = re.sub(r"[\s=]+", " ", line.strip(), count=1).partition(" ")
        words = value.replace('"', "").split()
        match keyword.lower():
            case "host":
                names = [word for word in words if not re.search(r"[*?!]", word)]
            case "match":
                names = []
            case "hostname":
                yield from (name for name in names if words and name.lower() != words[0].lower())
            case "include" if depth < 4:
                for pattern in words:
                    yield from _included(pattern, file, depth)


def _included(pattern: str, file: Path, depth: int) -> Iterator[str]:
    relative = pattern.removeprefix("~/.ssh/")
    if not relative.startswith(("/", "~")):
        for included in sorted(file.parent.glob(relative)):
            yield from _aliases(included, depth + 1)
