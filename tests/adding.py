"""What `provision --add` does first, as a command of its own: without a terminal, and on one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from fleetctl.cli import guard, options
from fleetctl.ui import console
from tests.conftest import ROOT, Outcome, clean_environment


@click.command()
@click.argument("target")
@options.inventory_file
@click.option("--as", "name")
@click.option("--group")
@click.option("--fingerprint")
@click.option("--yes", is_flag=True)
@options.login_password
@options.output
def add_command(
    target: str,
    file: Path | None,
    name: str | None,
    group: str | None,
    fingerprint: str | None,
    yes: bool,
    ask_password: bool,
    password_file: Path | None,
    as_json: bool,
) -> None:
    from fleetctl.cli.add import add

    path, called = add(
        file,
        target,
        name=name,
        group=group,
        fingerprint=fingerprint,
        password=options.password_source(ask_password, password_file, "Password"),
        yes=yes,
        timeout=10,
    )
    console.document({"file": str(path), "node": called})


@dataclass(frozen=True)
class Adding:
    """`add(…)` in a folder, with a home of its own."""

    folder: Path
    home: Path

    def __call__(self, *arguments: str) -> Outcome:
        done = subprocess.run(
            self._command(arguments),
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def on_terminal(self, *arguments: str, answers: Sequence[tuple[str, str]]) -> Outcome:
        """Each question is waited for and answered; what was shown is `err`."""
        main, side = pty.openpty()
        with subprocess.Popen(
            self._command(arguments),
            cwd=self.folder,
            env=self._environment(),
            stdin=side,
            stdout=subprocess.PIPE,
            stderr=side,
            start_new_session=True,
        ) as process:
            os.close(side)
            shown = b""
            for question, answer in answers:
                shown += _until(main, question)
                os.write(main, f"{answer}\n".encode())
            shown += _until(main, None)
            assert process.stdout is not None
            out = process.stdout.read().decode()
        os.close(main)
        return Outcome(process.returncode, out, shown.decode().replace("\r\n", "\n"))

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "tests.adding", *arguments]

    def _environment(self) -> dict[str, str]:
        return {**clean_environment(self.home), "PYTHONPATH": str(ROOT)}


def _until(terminal: int, question: str | None) -> bytes:
    """What is shown until the question, or until nobody is there any more."""
    shown = b""
    deadline = time.monotonic() + 30
    while question is None or question.encode() not in shown:
        assert time.monotonic() < deadline, shown
        try:
            data = os.read(terminal, 4096)
        except OSError:
            data = b""
        if not data:
            assert question is None, f"{question!r} was never asked: {shown.decode()}"
            break
        shown += data
    return shown


if __name__ == "__main__":
    guard.leave(guard.run(add_command, sys.argv[1:]))
