"""A program on a terminal of its own, with somebody who answers its questions."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import Outcome

_SECONDS = 60


def on_terminal(
    command: Sequence[str], folder: Path, env: Mapping[str, str], answers: Mapping[str, str]
) -> Outcome:
    """Each question is answered as often as it is asked. All that was shown is `err`."""
    main, side = pty.openpty()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(env),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    ) as process:
        os.close(side)
        shown, unread = "", ""
        deadline = time.monotonic() + _SECONDS
        while data := _read(main):
            assert time.monotonic() < deadline, shown
            shown, unread = shown + data, unread + data
            for question, answer in answers.items():
                if question in unread:
                    os.write(main, f"{answer}\n".encode())
                    unread = ""
    os.close(main)
    return Outcome(process.returncode, "", shown.replace("\r\n", "\n"))


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""
