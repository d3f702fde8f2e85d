"""Runs programs of this machine, waits for conditions, and defines the lab's error."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path


class LabError(Exception):
    """The lab failed; the message states why."""


def run(*argv: str | Path, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a command and return its stdout; on failure raise with its last lines of output."""
    try:
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True)
    except FileNotFoundError as missing:
        raise LabError(f"{argv[0]} is not installed") from missing
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{tail}")
    return done.stdout


def wait_until(done: Callable[[], bool], problem: str, log: Path) -> None:
    """Poll until `done`; on timeout raise with the problem and the end of the log."""
    deadline = time.monotonic() + 30
    while not done():
        if time.monotonic() > deadline:
            raise LabError(f"{problem}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)
