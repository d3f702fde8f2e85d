"""How text reaches stdout (the result) and stderr (messages): styles, tables, trees, pages, JSON.

Control characters are escaped before anything is written. rich draws on terminals and is imported
only then: pipes, `--json` and `--help` do not pay for it. It never sees markup, emoji codes or
links in our text, since everything is passed as `Text` to a console that has them switched off.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.tree import Tree

FORMAT = 1
"""Version of the JSON documents."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_STYLES = {
    "error": "bold red",
    "warning": "magenta",  # yellow and cyan are unreadable on white
    "hint": "bold",
    "faint": "dim",
    "strong": "bold",
    "added": "green",
    "removed": "red",
}
_PAGE_WIDTH = 100


class Branch(NamedTuple):
    """A line of a tree, and the lines below it."""

    title: str
    children: Sequence[Branch] = ()


def result(text: str) -> None:
    """Write a line of what the user asked for; failing to write it fails the command."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    sys.stdout.write(f"{text}\n")


def flush() -> None:
    """Make every result so far visible to the reader of stdout."""
    if sys.stdout is not None:
        sys.stdout.flush()


def talk(text: str) -> None:
    """Write a line to stderr: a warning, a hint, progress. A closed or full stderr is ignored."""
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


def complain(kind: str, text: str, hint: str | None = None) -> None:
    """Report an `error` or a `warning`, and what to do about it."""
    talk(f"{styled(kind, kind, sys.stderr)}: {printable(text)}")
    if hint:
        talk(f"{styled('hint', 'hint', sys.stderr)}: {printable(hint)}")


def document(payload: Mapping[str, object]) -> None:
    """Write the result as one JSON document of fleetctl's own format."""
    foreign_document({"format": FORMAT, **payload})


def foreign_document(payload: Mapping[str, object]) -> None:
    """Write a JSON document whose format others define, such as Ansible or JSON Schema."""
    result(json.dumps(payload, indent=2))


def page(markdown: str) -> None:
    """Show Markdown: rendered in the pager on a terminal, as it is in a pipe."""
    if sys.stdout is None or not sys.stdout.isatty():
        result(markdown.rstrip())
        return
    import click
    from rich.markdown import Markdown

    terminal = on_terminal(sys.stdout)
    terminal.width = min(terminal.width, _PAGE_WIDTH)
    with terminal.capture() as rendered:
        terminal.print(Markdown(markdown, hyperlinks=False))
    click.echo_via_pager(rendered.get())  # with colour only if the pager shows it


def table(rows: Iterable[Sequence[str]], indent: int = 0) -> list[str]:
    """Rows as lines with aligned cells. Only on a terminal do long cells wrap, in their column."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if cells and draws_on(sys.stdout):
        return _drawn(_rich_table(cells, indent))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        " " * indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def tree(root: Branch) -> list[str]:
    """A tree as lines."""
    if draws_on(sys.stdout):
        return _drawn(_rich_tree(root))
    return [printable(root.title).rstrip(), *_plain_branches(root.children)]


def printable(text: str) -> str:
    """Show control characters as escapes, so that no text can control the terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def styled(text: str, style: str, stream: TextIO | None) -> str:
    """Colour the text if the stream is a terminal that supports and wants colour."""
    if not draws_on(stream) or os.environ.get("NO_COLOR"):
        return text
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(_STYLES[style]).render(text, color_system=ColorSystem.STANDARD)


def draws_on(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal that understands escape codes."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def on_terminal(stream: TextIO, *, soft_wrap: bool = False) -> Console:
    """A rich console on a terminal that prints text as it is given."""
    from rich.console import Console

    return Console(
        file=stream,
        force_terminal=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        soft_wrap=soft_wrap,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _drawn(renderable: RenderableType) -> list[str]:
    terminal = on_terminal(sys.stdout)
    with terminal.capture() as rendered:
        terminal.print(renderable)
    return [line.rstrip() for line in rendered.get().splitlines()]


def _rich_table(cells: Sequence[Sequence[str]], indent: int) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Column, Table
    from rich.text import Text

    columns = (Column(overflow="fold") for _ in cells[0])  # the default cuts long words off
    grid = Table.grid(*columns, padding=(0, 2))
    for row in cells:
        grid.add_row(*map(Text, row))
    return Padding(grid, (0, 0, 0, indent))


def _rich_tree(branch: Branch, below: Tree | None = None) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    title = Text(printable(branch.title).rstrip())
    here = below.add(title) if below else Tree(title)
    for child in branch.children:
        _rich_tree(child, here)
    return here


def _plain_branches(branches: Sequence[Branch]) -> Iterator[str]:
    for at, branch in enumerate(branches, start=1):
        last = at == len(branches)
        yield ("└─ " if last else "├─ ") + printable(branch.title).rstrip()
        for line in _plain_branches(branch.children):
            yield ("   " if last else "│  ") + line
