"""A minute to believe it: demo."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@click.option("--keep", is_flag=True, help="Leave the fleet running, to try things.")
@click.option("--clean", is_flag=True, help="Remove what the demo has made.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("fleetctl-demo"))
@options.output
def demo(keep: bool, clean: bool, folder: Path, as_json: bool) -> Exit:
    """Run the real commands on a small simulated fleet, on this machine."""
    from fleetctl.sim.demo import play, running, steps, why_not_there

    if folder.exists() and not (folder / "machines").is_dir() and any(folder.iterdir()):
        raise FleetError(f"{folder} holds something else", exit_code=Exit.USAGE)
    shutil.rmtree(folder, ignore_errors=True)
    if clean:
        return Exit.OK
    folder.mkdir(parents=True)
    if unreachable := why_not_there(folder):
        raise FleetError(unreachable, hint="name another --folder", exit_code=Exit.USAGE)
    codes: list[tuple[str, int]] = []
    with running(folder) as fleet:
        for step in steps(fleet):
            code = play(step, folder, _tell)
            codes.append((step.command, code))
            if code != step.code:
                what = f"fleetctl {step.command} ended with {code}, not with {step.code}"
                raise FleetError(what, hint=f"look into {folder}")
        if keep:
            _keep(folder)
    if as_json:
        console.document({"steps": [{"command": text, "exit_code": code} for text, code in codes]})
    return Exit.OK


def _tell(text: str) -> None:
    """Beside the commands' own output, in the right order."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    console.talk(console.styled(text, "strong", sys.stderr))
    sys.stderr.flush()


def _keep(folder: Path) -> None:
    _tell(f"\nThe fleet runs until you press Ctrl-C. In another terminal, in {folder}:")
    for command in ("inventory --graph", "apply --dry-run", "history mini"):
        _tell(f"  fleetctl {command}")
    signal.pause()
