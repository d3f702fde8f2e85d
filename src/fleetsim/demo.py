"""The demo: a small simulated fleet, and the real commands, one after the other.

The commands run as a user would run them. The product has no demo mode."""

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
"""Name of a file that marks a folder as made by the demo, so that it may be removed."""

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
"""How long to wait for Ollama after a machine has started."""
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
    """A comment that is shown, the command, and its expected exit code."""

    about: str
    command: str
    code: int = 0
    edit: tuple[str, str] | None = None
    """Text of the inventory, and its replacement, made before the command runs."""


QUICK = "--yes --serial 100% --settle 1"
_BEFORE, _AFTER = "\nnodes:", "    keep_alive: 24h\n\nnodes:"
_GOOD, _BAD = "\nmodels:", "      models_dir: /Volumes/Missing\n\nmodels:"

STEPS = (
    Step("Validate the inventory.", "validate"),
    Step(
        "Provision all machines in parallel, without confirmation.",
        f"provision {QUICK} --no-diff",
    ),
    Step("Check the nodes against the inventory. Exit code 0: no drift.", "check"),
    Step(
        "Edit the inventory. Exit code 3: the nodes differ from it.",
        "check",
        3,
        (_BEFORE, _AFTER),
    ),
    Step("Apply the edit to the nodes.", f"apply {QUICK} --no-diff"),
    Step(
        "An edit that cannot work: studio has no such disk. It is rolled back.",
        f"apply {QUICK}",
        5,
        (_GOOD, _BAD),
    ),
    Step("Revert that edit. Exit code 0: no drift again.", "check", 0, (_BAD, _GOOD)),
    Step("The history of studio, from the log on the node.", "history studio"),
)
"""One step per command; a new command of the product gets its step here."""


def place(folder: Path) -> Path | None:
    """The folder for the demo, or None if there is no usable one. When root starts the demo, the
    machines run as another user, who must be able to enter the folder; if that user cannot, a
    folder of the same name in the temporary directory is used."""
    account = Account.unprivileged()
    for candidate in (folder, Path(gettempdir()) / folder.name):
        parents = (candidate, *candidate.absolute().parents)
        existing = next(path for path in parents if path.exists())
        if account.may_reach(existing.resolve()):
            return candidate
    return None


def make(folder: Path) -> None:
    """Make the folder, readable by others whatever the umask: the machines may run as another
    user."""
    os.umask(0o022)
    folder.mkdir(parents=True)
    (folder / MARK).touch()


def real_server() -> Path | None:
    found = shutil.which("ollama")
    return Path(found).resolve() if found else None


@contextmanager
def running(folder: Path, server: Path | None) -> Iterator[Fleet]:
    """Start the machines and write an inventory that names them. With a real server the models are
    installed already, so nothing is downloaded. The app on `mini` keeps its simulated server."""
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
            name=machine.name,
            host=machine.host,
            port=machine.port,
            endpoint=machine.endpoint,
            listens=machine.ollama_port if server else OLLAMA_PORT,
        )
        for machine in machines
    ]
    return _INVENTORY.format(identity=fleet.identity_file, nodes="\n".join(nodes))


def steps(fleet: Fleet) -> Iterator[Step]:
    """All steps. The `trust` steps need the host keys, so they exist only once the machines run."""
    first, *rest = STEPS
    yield first
    for machine in fleet.machines.values():
        about = f"Compare this with the fingerprint that {machine.name} shows on its own screen."
        yield Step(about, f"trust {machine.name} --fingerprint {machine.fingerprint}")
    yield from rest


def play(
    step: Step, folder: Path, tell: Callable[[str, str], None], output: TextIO | None = None
) -> int:
    """Run one step and return the exit code of its command; its stdout goes to `output`."""
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
    """Only the variables that the terminal needs; the user's other settings must not apply."""
    kept = ("PATH", "TERM", "LANG", "LC_ALL", "NO_COLOR", "COLUMNS")
    own = {name: value for name in kept if (value := os.environ.get(name))}
    return {**own, "HOME": str(folder)}
