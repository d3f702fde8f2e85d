"""How Ollama is on a new Mac: the ways that people have it, before fleetctl comes."""

import plistlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fleetctl.sim.installed import program_script
from fleetctl.sim.machine import Place
from fleetctl.sim.processes import JOINED, start_process
from fleetctl.sim.tools.calls import write_program

Furnishing = Literal["agent", "installed", "manual", "absent"]
"""`agent`: a LaunchAgent keeps it running. `installed`: the program, and nothing that runs it.
`manual`: somebody has typed `ollama serve`."""

LABEL = "dev.fleetctl.ollama"


@dataclass(frozen=True, slots=True)
class Rooms:
    place: Place
    installed: Path
    python: str

    @property
    def _program(self) -> Path:
        return self.place.home / ".local/bin/ollama"

    def furnish(self, how: Furnishing, environment: Mapping[str, str]) -> None:
        for folder in ("Library/LaunchAgents", ".ollama/logs"):
            (self.place.home / folder).mkdir(parents=True, exist_ok=True)
        if how != "absent":
            self._program.parent.mkdir(parents=True)
            text = program_script(self.installed, self.python, self.place.folder)
            write_program(self._program, text)
        if how == "agent":
            self._agent(environment)
        self.place.account.own_all(self.place.home)

    def _agent(self, environment: Mapping[str, str]) -> None:
        log = str(self.place.home / ".ollama/logs/fleetctl-server.log")
        values: dict[str, Any] = {
            "Label": LABEL,
            "ProgramArguments": [str(self._program), "serve"],
            "EnvironmentVariables": dict(environment),
            "RunAtLoad": True,
            "KeepAlive": True,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        file = self.place.home / f"Library/LaunchAgents/{LABEL}.plist"
        file.write_bytes(plistlib.dumps(values))
        file.chmod(0o644)

    def serve_by_hand(self, session: Mapping[str, str], environment: Mapping[str, str]) -> None:
        home = str(self.place.home)
        argv = [str(self._program), "serve"]
        start_process(argv, self.place.account, {**session, **environment}, home, JOINED)
