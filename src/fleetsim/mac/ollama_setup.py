"""Sets up Ollama on a new Mac, in each of the ways that users run it before fleetctl."""

import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fleetsim.installed import program_script
from fleetsim.mac.app_bundle import write_app, write_plist
from fleetsim.mac.mac import MacOS
from fleetsim.machine import Place
from fleetsim.processes import Streams, start_process
from fleetsim.tools.calls import write_program

OllamaMode = Literal["app", "agent", "brew", "installed", "manual", "absent"]
"""`app`: Ollama.app, opened at each login. `agent`: a LaunchAgent runs the server. `brew`:
Homebrew's service runs it. `installed`: the program only. `manual`: the user has run `ollama serve`
in a shell."""

LABEL = "dev.fleetctl.ollama"


@dataclass(frozen=True, slots=True)
class OllamaSetup:
    place: Place
    system: MacOS
    installed: Path
    """The folder of the simulated programs."""
    python: str
    server: Path | None
    """A real Ollama to use instead of the simulated one."""

    @property
    def _program(self) -> Path:
        return self.place.home / ".local/bin/ollama"

    def install(self, mode: OllamaMode, environment: Mapping[str, str]) -> None:
        if environment and mode not in ("agent", "manual"):
            raise ValueError(f"nothing on a Mac with Ollama as {mode!r} would use the environment")
        home = self.place.home
        for folder in ("Library/LaunchAgents", ".ollama/logs", ".local/bin"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        match mode:
            case "app":
                self._app(home / "Applications/Ollama.app/Contents")
            case "brew":
                self._brew()
            case "agent" | "installed" | "manual":
                self._write_ollama(self._program)
        if mode == "agent":
            self._agent(environment)
        self.place.account.own_all(home)

    def start_by_hand(self, environment: Mapping[str, str]) -> None:
        session = {**self.system.session_environment, **environment}
        argv = [str(self._program), "serve"]
        with (self.place.home / ".ollama/logs/by-hand.log").open("wb") as log:
            streams = Streams(subprocess.DEVNULL, log.fileno(), subprocess.STDOUT)
            process = start_process(
                argv, self.place.account, session, str(self.place.home), streams
            )
        threading.Thread(target=process.wait, daemon=True).start()

    def _write_ollama(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.server:
            path.symlink_to(self.server)
        else:
            write_program(path, program_script(self.installed, self.python, self.place.folder))

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
        write_plist(self.place.home / f"Library/LaunchAgents/{LABEL}.plist", values)

    def _app(self, contents: Path) -> None:
        items = self.place.folder / "login-items"
        script = program_script(self.installed, self.python, self.place.folder, "app")
        write_app(contents, script, self._program, items)
        self._write_ollama(contents / "Resources/ollama")
        self.place.account.own_all(items)

    def _brew(self) -> None:
        brew = self.system.brew
        self._write_ollama(brew.prefix / "opt/ollama/bin/ollama")
        for folder in (brew.bin, brew.prefix / "var/log"):
            folder.mkdir(parents=True, exist_ok=True)
        (brew.bin / "ollama").symlink_to("../opt/ollama/bin/ollama")
        brew.write_plist(brew.label, self.system.user)
