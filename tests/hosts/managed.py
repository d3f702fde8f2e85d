"""A node that fleetctl keeps, seen from outside: its files, its unit, and what its Ollama uses."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, Outcome
from tests.disturbed import Disturbance
from tests.hosts.project import LabProject
from tests.lab.fixture_types import Boot, Observe
from tests.lab.lab import Lab
from tests.lab.node import Node
from tests.lab.ollama_api import ask

QUICK = ("--yes", "--health-timeout", "20", "--settle", "0.3")
BOUND = 30
"""Seconds within which a node serves again by itself: its own 20 s, and a restart."""

_TEMPLATE = "systemd/drop-in.conf"
_SYSTEM = {
    "settings": "/etc/fleetctl/ollama.env",
    "drop-in": "/etc/systemd/system/ollama.service.d/zz-fleetctl.conf",
    "state": "/var/lib/fleetctl",
    "systemctl": "systemctl",
    "binary": "/usr/local/bin/ollama",
}
_USER = {
    "settings": "/home/ada/.config/fleetctl/ollama.env",
    "drop-in": "/home/ada/.config/systemd/user/ollama.service.d/zz-fleetctl.conf",
    "state": "/home/ada/.local/state/fleetctl",
    "systemctl": "runuser -u ada -- env XDG_RUNTIME_DIR=/run/user/1000 systemctl --user",
    "binary": "/home/ada/.local/bin/ollama",
}
_LOOK = r"""
section() {{ printf '\n== %s\n' "$1"; }}
for file in {settings} {drop-in}; do
  section $file
  [ ! -e $file ] || {{ ls -ln $file | cut -d' ' -f1,3,4; cat $file; }}
done
section left
(cd {state} 2>/dev/null && ls -d lock* journal* beat origin.new output 2>/dev/null)
find /etc /home/ada/.config -name '.*.fleetctl'
section unit
shown=$({systemctl} show ollama -p ActiveState -p UnitFileState -p NeedDaemonReload)
echo "$shown"
section run
run=$({systemctl} show ollama -p InvocationID --value)
pid=$({systemctl} show ollama -p MainPID --value)
echo $pid $run
section environ
tr '\0' '\n' </proc/$pid/environ 2>/dev/null | grep -E '^(OLLAMA|GPU)_' | sort
section config
journalctl --quiet -o cat _SYSTEMD_INVOCATION_ID=$run | grep 'msg="server config"' | tail -n 1
section log
cat {state}/log 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a node; `run` tells one start from another, and `log` one apply."""

    files: Mapping[str, str]
    left: str
    unit: str
    environ: str
    run: str = field(compare=False)
    config: str = field(compare=False)
    log: tuple[str, ...] = field(compare=False)

    def effective(self, variable: str) -> str:
        found = re.search(rf"\b{variable}:(\S*)", self.config)
        return found[1] if found else ""


@dataclass(slots=True)
class Managed:
    lab: Lab
    observe: Observe
    node: Node
    project: LabProject

    @property
    def place(self) -> Mapping[str, str]:
        return _USER if "/home/" in self.node.kind.ollama else _SYSTEM

    def run(self, command: str) -> str:
        """As root, over testinfra's own connection."""
        said: str = self.observe(self.node).check_output(command)
        return said

    def seen(self) -> Seen:
        parts = self.run(_LOOK.format_map(self.place)).split("\n== ")[1:]
        found = {
            name: text.strip("\n") for name, _, text in (each.partition("\n") for each in parts)
        }
        files = {name: found.pop(name) for name in (self.place["settings"], self.place["drop-in"])}
        return Seen(files, log=tuple(found.pop("log").splitlines()), **found)

    def set(self, **ollama: Any) -> None:
        self.project.nodes[self.node.name]["ollama"] = ollama

    def want(self, letter: str, **ollama: Any) -> None:
        """One of several states that differ in every file, so that going there takes every step."""
        self.set(keep_alive=f"{ord(letter)}m", **ollama)
        template = self.project.folder / "templates" / _TEMPLATE
        template.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / "templates" / _TEMPLATE).read_text()
        template.write_text(text.replace("Written by", f"Written as {letter} by"))

    def apply(self, *arguments: str) -> Outcome:
        return self.project("apply", *QUICK, *arguments)

    def disturbed(self, disturbance: Disturbance, *arguments: str) -> Outcome:
        return self.project.disturbed(disturbance, "apply", *QUICK, *arguments)

    def rests(self, seconds: float = BOUND) -> None:
        """Waits until no session of ours is at work there, and no restart that it asked for."""
        deadline = time.monotonic() + seconds
        while self.run("pgrep -fx '/bin/sh -s|systemctl .*' || true"):
            assert time.monotonic() < deadline, f"{self.node.name} does not come to rest"
            time.sleep(0.1)

    def serves(self, seconds: float = BOUND) -> float:
        """Waits until Ollama answers, and says how long that took."""
        began = time.monotonic()
        while not self.answers():
            assert time.monotonic() < began + seconds, f"{self.node.name} does not serve"
            time.sleep(0.1)
        return time.monotonic() - began

    def answers(self) -> bool:
        try:
            return bool(ask(self.node, "/api/version"))
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Manage:
    """Boots nodes, each with a project of its own unless one is given."""

    lab: Lab
    boot: Boot
    observe: Observe
    folder: Path

    def __call__(self, kinds: str, project: LabProject | None = None) -> Managed:
        node = self.boot(kinds)
        folder = self.folder / node.name
        if project is None:
            folder.mkdir()
        managed = Managed(self.lab, self.observe, node, project or LabProject(self.lab, folder))
        managed.project.add(node)
        return managed
