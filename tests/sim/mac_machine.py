"""Plists for a simulated Mac, and values from the output of its launchctl."""

import plistlib
import re
from pathlib import Path
from typing import Any

from fleetsim.mac.mac import Mac
from tests.sim.remote import Run

LABEL = "dev.fleetctl.ollama"
JOB = "com.example.job"


def plist(machine: Mac, label: str = JOB, script: str = "sleep 600", **keys: Any) -> Path:
    """Write the plist of an agent that runs a line of shell; keys with the value None are
    omitted."""
    values = {
        "Label": label,
        "ProgramArguments": ["/bin/sh", "-c", script],
        "RunAtLoad": True,
        "StandardOutPath": str(machine.home / f"{label}.out"),
        **keys,
    }
    file = machine.home / f"Library/LaunchAgents/{label}.plist"
    kept = {key: value for key, value in values.items() if value is not None}
    file.write_bytes(plistlib.dumps(kept))
    file.chmod(0o644)
    machine.own(file)
    return file


def field(run: Run, name: str, target: str = f"gui/$(id -u)/{JOB}") -> str:
    """A value of the job itself: its line has exactly one leading tab."""
    found = re.search(rf"^\t{name} = (.*)$", run(f"launchctl print {target}").out, re.MULTILINE)
    return found[1] if found else ""


def bootstrap(run: Run, domain: str = "gui", label: str = JOB) -> int:
    return run(f"launchctl bootstrap {domain}/$(id -u) Library/LaunchAgents/{label}.plist").code
