"""How a file on a node differs from what it should hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetctl.model.facts import File, Unknown
from fleetctl.model.plan import Finding, Level, WriteFile


def difference(file: File, wanted: WriteFile) -> Iterator[WriteFile | Finding]:
    """`wanted` as a change of what is there, if it is one."""
    path = wanted.path
    if file.mode and not file.mode.startswith("-"):
        yield Finding(Level.OBSTACLE, f"{path} is not a regular file", "move it out of the way")
    elif isinstance(file.content, Unknown):
        yield Finding(Level.UNKNOWN, f"{path} is not known, because {file.content.why}")
    elif file.content != wanted.after:
        yield replace(wanted, before=file.content)
    elif file.mode and file.permissions != wanted.mode:
        mode = f"{file.permissions:04o} → {wanted.mode:04o}"
        yield replace(wanted, before=file.content, details=(f"mode of {path} {mode}",))
