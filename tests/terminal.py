"""A program on a terminal of its own, with somebody who answers its questions."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.conftest import Outcome

Meanwhile = Callable[[int, subprocess.Popen[bytes]], None]
"""What happens to the terminal while the program runs."""

_SECONDS = 60
_NOTHING: Mapping[str, str] = {}


def on_terminal(
    *module: str,
    folder: Path,
    env: Mapping[str, str],
    answers: Mapping[str, str] = _NOTHING,
    size: tuple[int, int] = (24, 80),
    meanwhile: Meanwhile | None = None,
) -> Outcome:
    """`python -m module…`. Each question is answered as often as it is asked. All that was shown
    is `err`."""
    main, side = pty.openpty()
    resize(main, *size)
    with subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=folder,
        env=dict(env),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    ) as process:
        os.close(side)
        if meanwhile:
            threading.Thread(target=meanwhile, args=(main, process)).start()
        try:
            shown = _talk(main, answers)
        except AssertionError:
            process.kill()
            raise
    os.close(main)
    return Outcome(process.returncode, "", shown.decode().replace("\r\n", "\n"))


def screen(shown: str) -> list[str]:
    """The lines that a terminal has in the end, colours included: the escape codes that rich uses
    to redraw are carried out; any other is a failure."""
    lines, row = [""], 0
    for code, last, text in re.findall(r"(\x1b\[[?\d;]*([A-Za-z]))|([\r\n]|[^\x1b\r\n]+)", shown):
        if text == "\n":
            row += 1
            lines += [""] if row == len(lines) else []
        elif code == "\x1b[2K":
            lines[row] = ""
        elif code == "\x1b[1A":
            row -= 1
        elif last == "m" or text != "\r":
            assert text or last == "m" or code in ("\x1b[?25l", "\x1b[?25h"), repr(code)
            lines[row] += text or (code if last == "m" else "")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _talk(terminal: int, answers: Mapping[str, str]) -> bytes:
    shown, unread = b"", b""
    while data := _read(terminal):
        shown, unread = shown + data, unread + data
        for question, answer in answers.items():
            if question.encode() in unread:
                os.write(terminal, f"{answer}\n".encode())
                unread = b""
    return shown


def _read(terminal: int) -> bytes:
    """What it shows next; nothing once the program has gone."""
    ready, _, _ = select.select([terminal], [], [], _SECONDS)
    assert ready, f"nothing for {_SECONDS} s"
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
