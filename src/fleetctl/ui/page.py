"""A page of the documentation: as it is written for programs and pipes, laid out on a terminal."""

from __future__ import annotations

import sys

from fleetctl.ui import console

_WIDEST = 100


def show(markdown: str) -> None:
    if sys.stdout is None or not sys.stdout.isatty():
        console.result(markdown.rstrip())
        return
    import click
    from rich.console import Console
    from rich.markdown import Markdown

    terminal = Console()
    terminal.width = min(terminal.width, _WIDEST)
    with terminal.capture() as laid_out:
        terminal.print(Markdown(markdown, hyperlinks=False))
    click.echo_via_pager(laid_out.get(), color=True)
