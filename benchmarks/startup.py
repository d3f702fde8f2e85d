"""How long a command takes before it does anything: fleetctl beside subagent-fleet.

All are started in turn, round after round, so that a busy machine slows them alike; the ratios are
what counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHER = "subagent-fleet==0.2.1"
ROUNDS = 25


def other_tool() -> Path:
    """subagent-fleet in an environment of its own."""
    folder = ROOT / ".cache" / "subagent-fleet"
    program = folder / "bin" / "subagent-fleet"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, OTHER], check=True)
    return program


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    fleetctl, other = str(Path(sys.executable).with_name("fleetctl")), str(other_tool())
    fleet = str(ROOT / "tests" / "cases" / "subagent-fleet" / "three-machines.yaml")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "fleetctl --help": [fleetctl, "--help"],
        "fleetctl validate": [fleetctl, "validate", "-i", fleet],
        "subagent-fleet --help": [other, "--help"],
        "subagent-fleet validate": [other, "validate", "--config", fleet],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(seconds(command))
    print(f"{ROUNDS} rounds, milliseconds")
    print(f"{'':26}{'min':>8}{'median':>8}")
    for name, taken in times.items():
        print(f"{name:26}{min(taken) * 1000:8.0f}{statistics.median(taken) * 1000:8.0f}")
    for verb, goal in (("--help", 0.4), ("validate", 0.7)):
        pairs = zip(times[f"fleetctl {verb}"], times[f"subagent-fleet {verb}"], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        print(f"fleetctl {verb} takes {ratio:.2f} x as long as subagent-fleet's (goal: {goal} x)")


if __name__ == "__main__":
    main()
