"""Homebrew with the formula `ollama`; its service is an agent whose plist is rewritten at each
start."""

import json
import plistlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetsim.launchd.job import Job
from fleetsim.launchd.launchd import Launchd
from fleetsim.launchd.site import User
from fleetsim.launchd.variant import LaunchError
from fleetsim.tools.calls import Answer, Call, Refused

OLD_LABEL, NEW_LABEL = "homebrew.mxcl.ollama", "sh.brew.ollama"
_ENV_FILE_SINCE = (6, 0, 15)
_NEW_LABEL_SINCE = (6, 1, 0)
_FORMULA = {"OLLAMA_FLASH_ATTENTION": "1", "OLLAMA_KV_CACHE_TYPE": "q8_0"}
_SESSIONS = ["Aqua", "Background", "LoginWindow", "StandardIO", "System"]


@dataclass(frozen=True, slots=True)
class Brew:
    prefix: Path
    version: str
    launchd: Launchd

    def __call__(self, call: Call) -> Answer:
        match call.arguments:
            case ["--version" | "-v"]:
                return Answer(f"Homebrew {self.version}\n")
            case ["--prefix"]:
                return Answer(f"{self.prefix}\n")
            case ["--prefix", "ollama"]:
                return Answer(f"{self.prefix}/opt/ollama\n")
            case ["services", verb, "ollama", *flags]:
                return self._service(call, verb, flags)
            case ["services", "list", "--json"]:
                keys = ("name", "status", "user", "file", "exit_code")
                known = self._info(call)
                return Answer(json.dumps([{key: known[key] for key in keys}]) + "\n")
        raise Refused("this command of brew")

    @property
    def label(self) -> str:
        """The label that a service gets at its next start."""
        return NEW_LABEL if self._numbers >= _NEW_LABEL_SINCE else OLD_LABEL

    @property
    def bin(self) -> Path:
        return self.prefix / "bin"

    # --- services ---

    def _service(self, call: Call, verb: str, flags: list[str]) -> Answer:
        match verb, flags:
            case "start", []:
                if self._loaded(call):
                    again = "use `brew services restart ollama` to restart."
                    return Answer(f"Service `ollama` already started, {again}\n")
                return self._start(call)
            case "stop", []:
                return self._stop(call)
            case "restart", []:
                stopped = self._stop(call) if self._loaded(call) else Answer()
                started = self._start(call)
                return Answer(stopped.out + started.out, started.err, started.code)
            case "info", ["--json"]:
                return Answer(json.dumps([self._info(call)]) + "\n")
        raise Refused(f"services {verb} {flags}")

    def _start(self, call: Call) -> Answer:
        label = self.label
        file = self.write_plist(label, self._user(call), root=call.uid == 0)
        domain = self._domain(call)
        self.launchd.disabled.set(self.launchd.owner(domain), label, False)
        try:
            self.launchd.bootstrap(domain, file)
        except LaunchError as error:
            command = f"/bin/launchctl bootstrap {domain} {file}"
            message = f"Error: Failure while executing; `{command}` exited with {error.code}.\n"
            return Answer(err=message, code=1)
        return Answer(f"==> Successfully started `ollama` (label: {label})\n")

    def _stop(self, call: Call) -> Answer:
        found = self._loaded(call)
        if found is None:
            return Answer(err="Warning: Service `ollama` is not started.\n")
        domain, job = found
        label = job.definition.label
        self.launchd.bootout(domain, label, wait=True)
        Path(job.definition.path).unlink(missing_ok=True)
        out = "Stopping `ollama`... (might take a while)\n"
        return Answer(f"{out}==> Successfully stopped `ollama` (label: {label})\n")

    def write_plist(self, label: str, user: User, *, root: bool = False) -> Path:
        """Write the service's plist; earlier edits of it are lost."""
        log = str(self.prefix / "var/log/ollama.log")
        values: dict[str, Any] = {
            "Label": label,
            "ProgramArguments": [str(self.prefix / "opt/ollama/bin/ollama"), "serve"],
            "EnvironmentVariables": {**_FORMULA, **({} if root else self._env_file(user))},
            "KeepAlive": True,
            "RunAtLoad": True,
            "LimitLoadToSessionType": _SESSIONS,
            "WorkingDirectory": str(self.prefix / "var"),
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        file = (self.launchd.site.daemons if root else user.agents) / f"{label}.plist"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(plistlib.dumps(values))
        file.chmod(0o644)
        if not root:
            user.account.own(file)
        return file

    def _env_file(self, user: User) -> Mapping[str, str]:
        file = user.home / ".homebrew/services/ollama.env"
        if self._numbers < _ENV_FILE_SINCE or not file.exists() or file.stat().st_mode & 0o022:
            return {}
        lines = [line.strip() for line in file.read_text().splitlines()]
        pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
        # brew does not unquote values
        return {key.strip(): value.strip() for key, equals, value in pairs if equals}

    # --- state ---

    def _info(self, call: Call) -> dict[str, Any]:
        found = self._loaded(call)
        job = found[1] if found else None
        pid = job.state.pid or None if job else None
        failed = bool(job and job.state.last_exit)
        status = "started" if pid else "error" if failed else "stopped" if job else "none"
        file = job.definition.path if job else None
        log = str(self.prefix / "var/log/ollama.log")
        return {
            "name": "ollama",
            "service_name": job.definition.label if job else self.label,
            "running": bool(pid),
            "loaded": bool(job),
            "schedulable": False,
            "pid": pid,
            "exit_code": job.state.last_exit if job else None,
            "user": self._user(call).name if job else None,
            "status": status,
            "file": file,
            "registered": bool(file),
            "loaded_file": file,
            "command": f"{self.prefix}/opt/ollama/bin/ollama serve",
            "working_dir": str(self.prefix / "var"),
            "root_dir": None,
            "log_path": log,
            "error_log_path": log,
            "interval": None,
            "cron": None,
        }

    def _loaded(self, call: Call) -> tuple[str, Job] | None:
        """The domain and job of the service, in any domain and under either label."""
        uid = self._user(call).uid
        for domain in ("system", f"gui/{uid}", f"user/{uid}"):
            for label in (OLD_LABEL, NEW_LABEL):
                try:
                    with self.launchd.job(domain, label) as (_, job):
                        return domain, job
                except LaunchError:
                    continue
        return None

    def _domain(self, call: Call) -> str:
        """The domain that brew chooses. Over SSH without a terminal it assumes that the user is
        logged in at the screen."""
        if call.uid == 0:
            return "system"
        screen = self.launchd.console
        is_ours = screen is not None and screen.uid == call.uid
        kind = "user" if "SSH_TTY" in call.environment and not is_ours else "gui"
        return f"{kind}/{call.uid}"

    def _user(self, call: Call) -> User:
        return self.launchd.site.user(call.uid) or self.launchd.site.users[0]

    @property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split("."))
