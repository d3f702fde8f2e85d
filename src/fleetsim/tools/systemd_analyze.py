"""`systemd-analyze --user verify`: systemd's warnings about unit files and their drop-ins."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from fleetsim.systemd.unit import SearchPath, load
from fleetsim.tools.calls import Answer, Call, Refused, parse_options


@dataclass(frozen=True, slots=True)
class SystemdAnalyze:
    search: SearchPath

    def __call__(self, call: Call) -> Answer:
        words, options = parse_options(
            call.arguments, {"--user": "user", "--no-pager": "no-pager"}, {}
        )
        if not words or words[0] != "verify" or "user" not in options:
            raise Refused("anything but --user verify")
        err, code = "", 0
        for name in words[1:]:
            warnings, failed = self._verify(call.folder / name)
            err += "".join(f"{warning}\n" for warning in warnings)
            code = code or failed
        return Answer(err=err, code=code)

    def _verify(self, path: Path) -> tuple[list[str], int]:
        if not path.name.endswith(".service"):
            return [f"Failed to prepare filename {path}: Invalid argument"], 1
        if not path.exists():
            return [f"Unit {path.name} not found."], 1
        # the named file, with the drop-ins for its name in all folders
        search = replace(self.search, folders=(path.parent, *self.search.folders))
        unit = load(path.name, search)
        warnings = list(unit.warnings)
        if unit.load_state == "bad-setting":
            nothing = "Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing."
            warnings.append(f"{path.name}: {nothing}")
            warnings.append(f"Unit {path.name} has a bad unit file setting.")
            return warnings, 1
        if unit.argv and not os.access(unit.argv[0], os.X_OK):
            reason = "No such file or directory"
            warnings.append(f"{path.name}: Command {unit.argv[0]} is not executable: {reason}")
            return warnings, 1
        return warnings, 0
