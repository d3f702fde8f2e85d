"""The documentation, taken apart: pages, links, tables, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fenced(page: Path, language: str) -> list[str]:
    return [body for name, body in _FENCE.findall(page.read_text()) if name == language]


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return _FENCE.sub("", page.read_text())


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def first_cells(page: Path) -> list[str]:
    """What stands in code in the first column of its tables."""
    return re.findall(r"^\| `([^`]+)` \|", page.read_text(), re.MULTILINE)


def commands(program: str) -> Iterator[tuple[str, str]]:
    """(page, command): lines of shell blocks, and code in the middle of a sentence."""
    for page in PAGES:
        for block in fenced(page, "sh"):
            for line in block.splitlines():
                command = line.partition(" #")[0].strip()
                if command.split(" ")[0] == program:
                    yield page.name, command
        for command in re.findall(rf"`({program} [^`]+)`", prose(page)):
            yield page.name, command
