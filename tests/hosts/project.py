"""A project whose inventory names nodes of the lab."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetctl.project import make_state
from tests.conftest import ROOT, FleetctlIn, Outcome, finished
from tests.disturbed import Disturbance
from tests.lab.base import USER
from tests.lab.lab import Lab
from tests.lab.node import Node


@dataclass
class LabProject:
    lab: Lab
    folder: Path
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def add(self, node: Node, **values: Any) -> None:
        ssh = {"host": node.address, "user": USER, "identity_file": str(self.lab.identity_file)}
        self.nodes[node.name] = {"ssh": ssh, "endpoint": node.endpoint, **values}
        state = self.folder / ".fleetctl"
        make_state(state)
        shutil.copy(self.lab.known_hosts, state / "known_hosts")

    def lead_through(self, node: Node, port: int) -> None:
        """The way to a node that was added leads through a port of this machine."""
        self.add(node)
        self.nodes[node.name]["ssh"] |= {"host": "127.0.0.1", "port": port}
        self.know(f"[127.0.0.1]:{port} {node.host_key}\n")

    def know(self, lines: str) -> None:
        """From now on these are the host keys that are known."""
        make_state(self.folder / ".fleetctl")
        (self.folder / ".fleetctl" / "known_hosts").write_text(lines)

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
        return self.fleetctl(*arguments, env=env)

    @property
    def fleetctl(self) -> FleetctlIn:
        """In the folder of this project, with the inventory as it is now."""
        fleetctl = FleetctlIn(self.folder)
        fleetctl.write(json.dumps({"nodes": self.nodes, **self.rest}))
        return fleetctl

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A run that a test may disturb, or wait for."""
        return self.fleetctl.start(*arguments, env={"PYTHONPATH": str(ROOT)})

    def disturbed(self, disturbance: Disturbance, *arguments: str) -> Outcome:
        return finished(self.start(*disturbance.arguments, *arguments))

    def changes(self, node: Node, *arguments: str) -> list[str]:
        """The titles and details of what a check would change on a node."""
        outcome = self("check", "--json", "--limit", node.name, *arguments)
        found = outcome.json["nodes"][node.name]["changes"]
        return [line for change in found for line in change.get("details") or [change["title"]]]

    def put_what_the_plan_says(self, node: Node) -> None:
        """Write the planned files by hand, from the plan's own diffs."""
        for change in self("check", "--json").json["nodes"][node.name]["changes"]:
            if "diff" in change:
                path = change["path"].replace("~", f"/home/{USER}", 1)
                lines = [line[1:] for line in change["diff"] if line.startswith(("+", " "))]
                node.write(path, "".join(f"{line}\n" for line in lines))
