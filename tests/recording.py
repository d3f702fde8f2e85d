"""docs/demo.svg: the demo as it looks on a terminal, from its real output.

`python -m tests.recording` runs the demo and writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conftest import ROOT
from tests.terminal import on_terminal, screen

_COLUMNS, _ROWS = 84, 38
_SECONDS_A_LINE = 0.2
_LEFT, _TOP, _WIDTH, _HEIGHT = 16, 44, 8.43, 18
_CLASSES = {"1": "b", "2": "d", "31": "r", "32": "g", "35": "m", "1;31": "r b"}
_STYLE = """\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d4d4d4}
.b{font-weight:700;fill:#fff}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#7ee787}.m{fill:#d2a8ff}
.s{visibility:hidden}.s0{visibility:visible}
"""


def record() -> str:
    """What a terminal of that size is sent by the demo."""
    env = {**os.environ, "TERM": "xterm-256color"}
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shown = on_terminal("fleetctl", "demo", folder=folder, env=env, size=(_ROWS, _COLUMNS))
    return shown.exits(0).err


def screens(shown: str) -> list[list[str]]:
    """As many steps as fit on a screen together; a longer one goes on on the next."""
    found: list[list[str]] = [[]]
    for step in re.split(r"\n(?=\x1b\[1m\n# )", shown.strip("\n")):
        lines = list(_lines(step))
        if len(found[-1]) + len(lines) > _ROWS:
            found.append([])
        while lines:
            found[-1], lines = [*found[-1], *lines[:_ROWS]], lines[_ROWS:]
            found += [[]] if lines else []
    return found


def _lines(text: str) -> Iterator[str]:
    """As they stand in the end: the live display is gone, a long line is wrapped."""
    for line in screen(text):
        pieces = re.findall(r"(?:\x1b\[[\d;]*m)*.(?:\x1b\[[\d;]*m)*", line)
        for at in range(0, max(1, len(pieces)), _COLUMNS):
            yield "".join(pieces[at : at + _COLUMNS])


def svg(found: list[list[str]]) -> str:
    width = _LEFT * 2 + _COLUMNS * _WIDTH
    height = _TOP + _LEFT + _ROWS * _HEIGHT
    seconds = [2 + _SECONDS_A_LINE * len(screen) for screen in found]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" '
            f'viewBox="0 0 {width:.0f} {height}">',
            f"<style>{_STYLE}{''.join(_frames(seconds))}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#161b22"/>',
            *(
                f'<circle cx="{20 + 18 * at}" cy="20" r="6" fill="{colour}"/>'
                for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
            ),
            *(
                f'<g class="s s{at}">\n{"".join(_texts(screen))}</g>'
                for at, screen in enumerate(found)
            ),
            "</svg>\n",
        ]
    )


def _frames(seconds: list[float]) -> Iterator[str]:
    total, begin = sum(seconds), 0.0
    for at, each in enumerate(seconds):
        start, end = (100 * moment / total for moment in (begin, begin + each))
        yield (
            f".s{at}{{animation:k{at} {total:.0f}s step-end infinite}}\n@keyframes k{at}"
            f"{{0%{{visibility:{'hidden' if at else 'visible'}}}{start:.2f}%{{visibility:visible}}"
            f"{end:.2f}%,100%{{visibility:hidden}}}}\n"
        )
        begin += each


def _texts(lines: list[str]) -> Iterator[str]:
    style = ""
    for at, line in enumerate(lines):
        spans = []
        for code, text in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
            style = code or style
            if text:
                name = _CLASSES.get(style, "")
                said = escape(text, quote=False)
                spans.append(f'<tspan class="{name}">{said}</tspan>' if name else said)
        if spans:
            yield f'<text x="{_LEFT}" y="{_TOP + at * _HEIGHT}">{"".join(spans)}</text>\n'


if __name__ == "__main__":
    (ROOT / "docs" / "demo.svg").write_text(svg(screens(record())), encoding="utf-8")
