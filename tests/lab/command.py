"""Running a program of this machine, waiting for one, and the one error of the lab."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path


class LabError(Exception):
    """The lab cannot do what was asked; the message says why."""


def run(*argv: str | Path, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed; a failure shows its last lines."""
    try:
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True)
    except FileNotFoundError as missing:
        raise LabError(f"{argv[0]} is not installed") from missing
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{tail}")
    return done.stdout


def wait_until(done: Callable[[], bool], problem: str, log: Path) -> None:
    """Poll until something is done; after a while say what is the matter, and what was logged."""
    deadline = time.monotonic() + 30
    while not done():
        if time.monotonic() > deadline:
            raise LabError(f"{problem}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)
