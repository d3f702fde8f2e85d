"""The demo: a small simulated fleet, and the real commands, one after the other.

The commands are run as a user would run them. Nothing in the product knows that it is a demo.
"""

import difflib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fleetctl.sim.fleet import Fleet
from fleetctl.sim.machine import Machine
from fleetctl.sim.processes import Account

LIBRARY = ("qwen2.5-coder:7b", "qwen2.5-coder:32b")

_INVENTORY = """\
defaults:
  ssh: {{user: ada, identity_file: {identity}}}
  ollama: {{host: "127.0.0.1:11434"}}

nodes:
{nodes}

models:
  light: {{node: {light}, ollama_model: "qwen2.5-coder:7b", context: 32768}}
  heavy: {{node: workstation, ollama_model: "qwen2.5-coder:32b", context: 32768}}

agents:
  planner: {{model: light, description: Plans a change before anything is edited.}}
  implementer: {{model: heavy, description: Carries out one planned change.}}
"""
_NODE = "  {name}: {{ssh: {{host: {host}, port: {port}}}, endpoint: {endpoint}}}"


@dataclass(frozen=True, slots=True)
class Step:
    """What is said before a command, the command, and how it must end."""

    about: str
    command: str
    code: int = 0
    edit: tuple[str, str] | None = None
    """Text of the inventory, and what it becomes before the command."""


QUICK = "--yes --serial 100% --settle 1"
LONGER = "ollama: {keep_alive: 24h, host"
MISSING = "ollama: {models_dir: /Volumes/Models, keep_alive: 24h, host"

STEPS = (
    Step("Is the inventory all right?", "validate"),
    Step("Make the machines nodes of the fleet.", f"provision {QUICK} --no-diff"),
    Step("Are they what the inventory says? Exit code 0: yes.", "check"),
    Step(
        "Somebody edits the inventory. Exit code 3: the nodes differ now.",
        "check --no-diff",
        3,
        ("ollama: {host", LONGER),
    ),
    Step("Bring the edit to the nodes.", f"apply {QUICK} --no-diff"),
    Step(
        "An edit that cannot work: that disk is not there. Every node goes back by itself.",
        f"apply {QUICK} --no-diff --health-timeout 5",
        5,
        (LONGER, MISSING),
    ),
    Step(
        "The edit is taken back, and all is well: nothing was lost.", "check", 0, (MISSING, LONGER)
    ),
    Step("What was done on a node, by its own log.", "history mini"),
)
"""One line a command: what comes later in the product joins here."""


def why_not_there(folder: Path) -> str | None:
    """Started by root, the machines run as somebody else, who must be able to enter."""
    account = Account.unprivileged()
    reachable = account.may_reach(folder.resolve())
    return None if reachable else f"user {account.uid} cannot enter {folder.resolve()}"


@contextmanager
def running(folder: Path) -> Iterator[Fleet]:
    """The machines, and a project that names them."""
    with Fleet(folder / "machines", library=LIBRARY) as fleet:
        machines = [
            fleet.linux("workstation"),
            fleet.mac("studio", ollama="app"),
            fleet.mac("mini", ollama="installed"),
        ]
        (folder / "fleet.yaml").write_text(_inventory(fleet, machines))
        yield fleet


def _inventory(fleet: Fleet, machines: list[Machine]) -> str:
    nodes = [
        _NODE.format(name=each.name, host=each.host, port=each.port, endpoint=each.endpoint)
        for each in machines
    ]
    return _INVENTORY.format(
        identity=fleet.identity_file, nodes="\n".join(nodes), light=machines[-1].name
    )


def steps(fleet: Fleet) -> Iterator[Step]:
    """All commands; whom to trust is known when the machines have shown their keys."""
    first, *rest = STEPS
    yield first
    for machine in fleet.machines.values():
        about = f"The fingerprint that {machine.name} shows on its own screen."
        yield Step(about, f"trust {machine.name} --fingerprint {machine.fingerprint}")
    yield from rest


def play(step: Step, folder: Path, tell: Callable[[str], None]) -> int:
    """Runs one step, and gives the exit code of its command."""
    tell(f"\n# {step.about}")
    if step.edit is not None:
        for line in _edited(folder / "fleet.yaml", *step.edit):
            tell(line)
    tell(f"$ fleetctl {step.command}")
    command = [sys.executable, "-m", "fleetctl", *shlex.split(step.command)]
    return subprocess.run(command, cwd=folder, env=_environment(folder), check=False).returncode


def _edited(file: Path, before: str, after: str) -> list[str]:
    old = file.read_text()
    new = old.replace(before, after)
    file.write_text(new)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


def _environment(folder: Path) -> dict[str, str]:
    """Of the user's own settings only what the terminal needs."""
    kept = ("PATH", "TERM", "LANG", "LC_ALL", "NO_COLOR", "COLUMNS")
    own = {name: value for name in kept if (value := os.environ.get(name))}
    return {**own, "HOME": str(folder)}
