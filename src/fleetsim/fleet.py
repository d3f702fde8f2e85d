"""A fleet of simulated machines in one folder and one process, for tests and for the demo.

with Fleet(folder) as fleet:
    machine = fleet.linux("workstation", models=["qwen2.5-coder:7b"])
    ... machine.host, machine.port, machine.user, machine.identity_file, machine.host_key
"""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from fleetsim import ADDRESS
from fleetsim.installed import install_ollama
from fleetsim.keys import make_key
from fleetsim.launchd.variant import RELEASES
from fleetsim.library import Library
from fleetsim.linux import Linux
from fleetsim.mac.facts import MAC_VRAM
from fleetsim.mac.mac import Mac, MacOS
from fleetsim.mac.ollama_setup import OllamaMode, OllamaSetup
from fleetsim.machine import Machine, Place
from fleetsim.processes import Account, interpreter_for
from fleetsim.tools.calls import ToolServer, write_program

_UNIT = """\
[Unit]
Description=Ollama
After=network-online.target

[Service]
ExecStart=%h/.local/bin/ollama serve
Restart=always
RestartSec=3
{environment}
[Install]
WantedBy=default.target
"""


class Fleet:
    def __init__(self, folder: Path, *, library: Iterable[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder.resolve()
        self.machines: dict[str, Machine] = {}
        self.identity_file = self.folder / "identity"
        make_key(self.identity_file)
        self.account = Account.unprivileged()
        self._python = interpreter_for(self.account)
        self._tool_server = ToolServer()
        self.library = Library(self.folder / "library")
        for name in library:
            self.library.add(name)
        self._installed = self.folder / "installed"
        self._ollama = install_ollama(self._installed, self._python)
        (self._installed / "pycache").mkdir(exist_ok=True)
        self.account.own(self._installed / "pycache")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for machine in self.machines.values():
            machine.stop()
        self._tool_server.close()

    def linux(
        self,
        name: str,
        *,
        user: str = "ada",
        models: Iterable[str] = (),
        ollama: Literal["running", "installed", "absent"] = "running",
        environment: Mapping[str, str] | None = None,
        linger: bool = True,
        vram: int = 0,
        server: Path | None = None,
    ) -> Machine:
        """Make and start a Linux machine. Ollama is `running` as the user's service, only
        `installed`, or `absent`; `server` is a real Ollama to use instead of the simulated one. If
        the machine's folder exists already, its files are kept and the other arguments about its
        contents are ignored."""
        place = Place(self.folder / name, name, user, self.account)
        is_new = not place.folder.exists()
        place.make()
        system = Linux(place)
        system.install_tools(self._tool_server, self._python)
        machine = self.machines[name] = Machine(place, system, self.identity_file)
        machine.behave(library=str(self.library.folder), vram=vram, addresses=[ADDRESS])
        if server:  # the simulated server maps its port itself
            environment = {"OLLAMA_HOST": f"127.0.0.1:{machine.ollama_port}", **(environment or {})}
        if is_new:
            self._install_on_linux(place, models, ollama, environment or {}, linger, server)
        machine.start()
        return machine

    def mac(
        self,
        name: str,
        *,
        macos: str = "15",
        user: str = "ada",
        models: Iterable[str] = (),
        ollama: OllamaMode = "agent",
        environment: Mapping[str, str] | None = None,
        logged_in: bool = True,
        auto_login: bool = False,
        app_settings: Mapping[str, Any] | None = None,
        brew: str = "6.0.18",
        vram: int = MAC_VRAM,
        server: Path | None = None,
    ) -> Mac:
        """Make and start a Mac. `OllamaMode` describes `ollama`; `server` is a real Ollama to use
        instead of the simulated one. With `logged_in` the user is logged in at the screen; after a
        reboot only with `auto_login`. `app_settings` are settings of Ollama.app, `brew` is the
        version of Homebrew for `ollama="brew"`."""
        place = Place(self.folder / name, name, user, self.account)
        is_new = not place.folder.exists()
        place.make()
        system = MacOS(place, RELEASES[macos], brew)
        machine = Mac(place, system, self.identity_file, auto_login=auto_login)
        self.machines[name] = machine
        library = str(self.library.folder)
        machine.behave(library=library, vram=vram, gpu="Metal", addresses=[ADDRESS])
        setup = OllamaSetup(place, system, self._installed, self._python, server)
        if is_new:
            for model in models:
                self.library.install(model, place.home / ".ollama/models")
            if app_settings:
                machine.set_app(**app_settings)
            setup.install(ollama, environment or {})
        system.install_tools(self._tool_server, self._python)
        machine.start()
        if is_new and logged_in:
            machine.log_in()
        if is_new and ollama == "manual":
            setup.start_by_hand(environment or {})
        return machine

    def _install_on_linux(
        self,
        place: Place,
        models: Iterable[str],
        ollama: str,
        environment: Mapping[str, str],
        linger: bool,
        server: Path | None,
    ) -> None:
        if linger:
            (place.folder / "linger").touch()
        for model in models:
            self.library.install(model, place.home / ".ollama/models")
        if ollama != "absent":
            program = place.home / ".local/bin/ollama"
            program.parent.mkdir(parents=True)
            if server:
                program.symlink_to(server)
            else:
                command = shlex.join([*self._ollama, str(place.folder)])
                write_program(program, f'#!/bin/sh\nexec {command} "$@"\n')
        if ollama == "running":
            lines = [f'Environment="{key}={value}"\n' for key, value in environment.items()]
            unit = place.home / ".config/systemd/user/ollama.service"
            wants = unit.parent / "default.target.wants"
            wants.mkdir(parents=True)
            unit.write_text(_UNIT.format(environment="".join(lines)))
            (wants / unit.name).symlink_to(unit)
        place.account.own_all(place.home)
