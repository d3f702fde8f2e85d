"""`systemd-analyze --user verify`: what systemd would say about unit files and their drop-ins."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from fleetsim.systemd.unit import SearchPath, load
from fleetsim.tools.calls import Answer, Call, Refused, parse


@dataclass(frozen=True, slots=True)
class SystemdAnalyze:
    search: SearchPath

    def __call__(self, call: Call) -> Answer:
        words, options = parse(call.arguments, {"--user": "user", "--no-pager": "no-pager"}, {})
        if not words or words[0] != "verify" or "user" not in options:
            raise Refused("anything but --user verify")
        err, code = "", 0
        for name in words[1:]:
            complaints, failed = self._verify(call.folder / name)
            err += "".join(f"{complaint}\n" for complaint in complaints)
            code = code or failed
        return Answer(err=err, code=code)

    def _verify(self, path: Path) -> tuple[list[str], int]:
        if not path.name.endswith(".service"):
            return [f"Failed to prepare filename {path}: Invalid argument"], 1
        if not path.exists():
            return [f"Unit {path.name} not found."], 1
        # the file that was named, with the drop-ins that its name has anywhere
        search = replace(self.search, folders=(path.parent, *self.search.folders))
        unit = load(path.name, search)
        complaints = list(unit.complaints)
        if unit.load_state == "bad-setting":
            nothing = "Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing."
            complaints.append(f"{path.name}: {nothing}")
            complaints.append(f"Unit {path.name} has a bad unit file setting.")
            return complaints, 1
        if unit.argv and not os.access(unit.argv[0], os.X_OK):
            reason = "No such file or directory"
            complaints.append(f"{path.name}: Command {unit.argv[0]} is not executable: {reason}")
            return complaints, 1
        return complaints, 0
