"""How a file on a node differs from what it should hold."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.model.facts import File, Unknown
from fleetctl.model.plan import Finding, Level, WriteFile


def difference(
    path: str, file: File, after: str, mode: int = 0o644, details: tuple[str, ...] = ()
) -> Iterator[WriteFile | Finding]:
    if file.mode and not file.mode.startswith("-"):
        yield Finding(Level.OBSTACLE, f"{path} is not a regular file", "move it out of the way")
    elif isinstance(file.content, Unknown):
        yield Finding(Level.UNKNOWN, f"{path} is not known, because {file.content.why}")
    elif file.content != after:
        yield WriteFile(path, file.content, after, mode, details)
