"""The demo: a small simulated fleet, and the real commands, one after the other.

The commands are run as a user would run them. Nothing in the product knows that it is a demo.
"""

import difflib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TextIO

from fleetsim.fleet import Fleet
from fleetsim.machine import OLLAMA_PORT, Machine
from fleetsim.processes import Account

LIBRARY = ("qwen2.5-coder:7b", "qwen2.5-coder:32b")
MARK = "made-by-fleetctl-demo"
"""A file that says whose folder it is, and so that it may be removed."""

_INVENTORY = """\
defaults:
  ssh: {{user: ada, identity_file: {identity}}}
  ollama:
    no_cloud: true

nodes:
{nodes}
models:
  light: {{node: mini, ollama_model: "qwen2.5-coder:7b", context: 32768}}
  heavy: {{node: workstation, ollama_model: "qwen2.5-coder:32b", context: 32768}}

agents:
  planner: {{model: light, description: Plans a change before anything is edited.}}
  implementer: {{model: heavy, description: Carries out one planned change.}}
"""
_SECONDS = 10
"""In which Ollama is up on a machine that was switched on."""
_STYLES = {"+": "added", "-": "removed"}
_NODE = """\
  {name}:
    ssh: {{host: {host}, port: {port}}}
    endpoint: {endpoint}
    ollama:
      host: 127.0.0.1:{listens}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What is said before a command, the command, and how it must end."""

    about: str
    command: str
    code: int = 0
    edit: tuple[str, str] | None = None
    """Text of the inventory, and what it becomes before the command."""


QUICK = "--yes --serial 100% --settle 1"
_BEFORE, _AFTER = "\nnodes:", "    keep_alive: 24h\n\nnodes:"
_GOOD, _BAD = "\nmodels:", "      models_dir: /Volumes/Missing\n\nmodels:"

STEPS = (
    Step("Is the inventory all right?", "validate"),
    Step(
        "Make the machines nodes of the fleet, all at once, without a question.",
        f"provision {QUICK} --no-diff",
    ),
    Step("Are they what the inventory says? Exit code 0: yes.", "check"),
    Step(
        "You edit the inventory. Exit code 3: now the nodes differ from it.",
        "check",
        3,
        (_BEFORE, _AFTER),
    ),
    Step("Bring the edit to the nodes.", f"apply {QUICK} --no-diff"),
    Step(
        "An edit that cannot work: studio has no such disk. It goes back by itself.",
        f"apply {QUICK}",
        5,
        (_GOOD, _BAD),
    ),
    Step("You take that edit back, and all is well.", "check", 0, (_BAD, _GOOD)),
    Step("What was done on studio, by its own log.", "history studio"),
)
"""One line a command: what comes later in the product joins here."""


def place(folder: Path) -> Path | None:
    """The folder. Started by root, the machines run as somebody else, who must be able to enter;
    where that user cannot, it is one of the same name among the temporary files, if not there
    either, none."""
    account = Account.unprivileged()
    for each in (folder, Path(gettempdir()) / folder.name):
        there = next(path for path in (each, *each.absolute().parents) if path.exists())
        if account.may_reach(there.resolve()):
            return each
    return None


def make(folder: Path) -> None:
    """Others may enter, whatever the umask: the machines may run as somebody else."""
    os.umask(0o022)
    folder.mkdir(parents=True)
    (folder / MARK).touch()


def real_server() -> Path | None:
    found = shutil.which("ollama")
    return Path(found).resolve() if found else None


@contextmanager
def running(folder: Path, server: Path | None) -> Iterator[Fleet]:
    """The machines, and a project that names them. With a real server nothing is downloaded: the
    models are there already. The app on `mini` keeps its simulated one."""
    with Fleet(folder / "machines", library=LIBRARY) as fleet:
        serving = [
            fleet.linux("workstation", server=server, models=LIBRARY if server else ()),
            fleet.mac("mini", ollama="app"),
        ]
        machines = [*serving, fleet.mac("studio", ollama="installed", server=server)]
        (folder / "fleet.yaml").write_text(_inventory(fleet, machines, server))
        for machine in serving:
            _wait_for(machine)
        yield fleet


def _wait_for(machine: Machine) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((machine.host, machine.ollama_port)):
            return
        time.sleep(0.05)


def _inventory(fleet: Fleet, machines: list[Machine], server: Path | None) -> str:
    nodes = [
        _NODE.format(
            name=each.name,
            host=each.host,
            port=each.port,
            endpoint=each.endpoint,
            listens=each.ollama_port if server else OLLAMA_PORT,
        )
        for each in machines
    ]
    return _INVENTORY.format(identity=fleet.identity_file, nodes="\n".join(nodes))


def steps(fleet: Fleet) -> Iterator[Step]:
    """All commands; whom to trust is known when the machines have shown their keys."""
    first, *rest = STEPS
    yield first
    for machine in fleet.machines.values():
        about = f"Compare this with the fingerprint that {machine.name} shows on its own screen."
        yield Step(about, f"trust {machine.name} --fingerprint {machine.fingerprint}")
    yield from rest


def play(
    step: Step, folder: Path, tell: Callable[[str, str], None], output: TextIO | None = None
) -> int:
    """Runs one step, and gives the exit code of its command; its result goes to `output`."""
    tell(f"\n# {step.about}", "hint")
    if step.edit is not None:
        for line in _edited(folder / "fleet.yaml", *step.edit):
            tell(line, _STYLES.get(line[0], "faint"))
    shown = step.command.replace(" --fingerprint", " \\\n    --fingerprint")
    tell(f"$ fleetctl {shown}", "strong")
    command = [sys.executable, "-m", "fleetctl", *shlex.split(step.command)]
    done = subprocess.run(command, cwd=folder, env=_environment(folder), stdout=output, check=False)
    return done.returncode


def _edited(file: Path, before: str, after: str) -> list[str]:
    old = file.read_text()
    new = old.replace(before, after)
    file.write_text(new)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


def _environment(folder: Path) -> dict[str, str]:
    """Of the user's own settings only what the terminal needs."""
    kept = ("PATH", "TERM", "LANG", "LC_ALL", "NO_COLOR", "COLUMNS")
    own = {name: value for name in kept if (value := os.environ.get(name))}
    return {**own, "HOME": str(folder)}
