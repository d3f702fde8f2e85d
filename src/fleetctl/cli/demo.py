"""The real commands on simulated machines: demo."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from fleetctl.cli import options
from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console


@click.command()
@click.option("--keep", is_flag=True, help="Leave the fleet running, to try things.")
@click.option("--clean", is_flag=True, help="Remove what the demo has made.")
@click.option("--real-ollama", is_flag=True, help="Run the `ollama` of this machine's PATH.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("fleetctl-demo"),
    help="Where everything is kept.",
    show_default=True,
)
@options.output
def demo(keep: bool, clean: bool, real_ollama: bool, folder: Path, as_json: bool) -> Exit:
    """Run the real commands on a simulated fleet, on this machine."""
    if sys.platform != "linux":
        what = "the simulated fleet needs Linux, whose /proc it reads"
        raise FleetError(what, hint="run it in a container or a VM", exit_code=Exit.USAGE)
    from fleetsim import demo

    folder = _place(folder)
    server = demo.real_server() if real_ollama else None
    if real_ollama and server is None:
        hint = "install Ollama, or leave --real-ollama out"
        raise FleetError("there is no `ollama` in the PATH", hint=hint, exit_code=Exit.USAGE)
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FleetError(f"{folder} cannot be removed: {error.strerror}") from None
    if clean:
        return Exit.OK
    demo.make(folder)
    codes: list[tuple[str, int]] = []
    with demo.running(folder, server) as fleet:
        for step in demo.steps(fleet):
            code = demo.play(step, folder, _tell, sys.stderr if as_json else None)
            codes.append((step.command, code))
            if code != step.code:
                what = f"fleetctl {step.command} ended with {code}, not with {step.code}"
                raise FleetError(what, hint=f"look into {folder}")
        if keep:
            _keep(folder)
    if as_json:
        console.document({"steps": [{"command": text, "exit_code": code} for text, code in codes]})
    return Exit.OK


def _place(folder: Path) -> Path:
    from tempfile import gettempdir

    from fleetsim import demo

    instead = demo.place(folder)
    if instead is None:
        what = f"{folder} is for root alone, and so is {gettempdir()}"
        hint = "name a folder that others may enter, with --folder or TMPDIR"
        raise FleetError(what, hint=hint, exit_code=Exit.USAGE)
    if instead != folder:
        console.talk(f"{folder} is for root alone; the machines are in {instead}")
    if instead.exists() and not (instead / demo.MARK).exists():
        raise FleetError(f"{instead} is not a folder of the demo", exit_code=Exit.USAGE)
    return instead


def _tell(text: str, style: str) -> None:
    """Beside the commands' own output, in the right order."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    console.talk(console.styled(text, style, sys.stderr))
    sys.stderr.flush()


def _keep(folder: Path) -> None:
    """Until Ctrl-C, which is how it is meant to end."""
    program = "fleetctl" if shutil.which("fleetctl") else Path(sys.argv[0]).resolve()
    _tell("\nThe fleet runs until you press Ctrl-C. Try these in another terminal:", "strong")
    _tell(f"  cd {folder.resolve()}", "strong")
    for command in ("inventory --graph", "check", "history workstation"):
        _tell(f"  {program} {command}", "strong")
    with suppress(KeyboardInterrupt):
        signal.pause()
