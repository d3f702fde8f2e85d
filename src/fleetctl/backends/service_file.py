"""Files by which an init system is told how to run the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fleetctl.model.facts import File
from fleetctl.shell import Record


@dataclass(frozen=True, slots=True)
class ServiceFile:
    template: str
    path: str
    """`~` is the home of the user."""
    decode: Callable[[str], Mapping[str, str]] | None = None
    """Reads the variables in it, if it holds them."""
    defines: bool = False
    """Whether the init system must read its files again after a change of it."""


def files_in(record: Record) -> Iterator[tuple[str, File]]:
    """By path, what a node has said: one listing of them all, and a section for each."""
    listing = record.section("modes").splitlines()
    for name, content in record.sections.items():
        kind, _, path = name.partition(" ")
        if kind == "file":
            lines = (line for line in listing if line.partition(" -> ")[0].endswith(f" {path}"))
            yield path, File.listed(content, next(lines, ""))
