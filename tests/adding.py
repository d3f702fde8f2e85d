"""What `provision --add` does first, as a command of its own: without a terminal, and on one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from fleetctl.cli import guard, options
from fleetctl.ui import console
from tests.conftest import ROOT, Outcome, clean_environment
from tests.terminal import on_terminal


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
    from fleetctl.join import Machine, join
    from fleetctl.ui.prompts import password_source

    password = password_source(ask_password, password_file, "Password")
    machine = Machine(target, name, group, fingerprint, password)
    path, called = join(file, machine, yes=yes, timeout=10)
    console.document({"file": str(path), "node": called})


@dataclass(frozen=True)
class Adding:
    """`add(…)` in a folder, with a home of its own."""

    folder: Path
    home: Path

    def __call__(self, *arguments: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "tests.adding", *arguments],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def on_terminal(self, *arguments: str, answers: Mapping[str, str]) -> Outcome:
        """Each question is asked and answered; what was shown is `err`."""
        outcome = on_terminal(
            "tests.adding", *arguments, folder=self.folder, env=self._environment(), answers=answers
        )
        for question in answers:
            assert question in outcome.err
        return outcome

    def _environment(self) -> dict[str, str]:
        return {**clean_environment(self.home), "PYTHONPATH": str(ROOT)}


if __name__ == "__main__":
    guard.leave(guard.run(add_command, sys.argv[1:]))
