"""`pmset`: the power settings, for everybody to read and for root to change."""

import json
from dataclasses import dataclass
from pathlib import Path

from fleetsim.tools.calls import Answer, Call, Refused

_DEFAULTS = {
    "sleep": 1, "disksleep": 10, "displaysleep": 10, "womp": 1, "autorestart": 0,
    "ttyskeepawake": 1, "tcpkeepalive": 1, "powernap": 1, "standby": 0, "disablesleep": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pmset:
    file: Path

    def __call__(self, call: Call) -> Answer:
        match call.arguments:
            case ["-g"]:
                return Answer("System-wide power settings:\nCurrently in use:\n" + self._shown())
            case ["-g", "custom"]:
                return Answer("AC Power:\n" + self._shown())
            case ["-a", *pairs] if pairs and len(pairs) % 2 == 0:
                return self._set(call, pairs)
        raise Refused("anything but -g, -g custom and -a KEY VALUE")

    def _values(self) -> dict[str, int]:
        stored: dict[str, int] = json.loads(self.file.read_text()) if self.file.exists() else {}
        return {**_DEFAULTS, **stored}

    def _shown(self) -> str:
        # the last one works, and is documented nowhere
        shown = {key: value for key, value in self._values().items() if key != "disablesleep"}
        return "".join(f" {key:<20} {value}\n" for key, value in sorted(shown.items()))

    def _set(self, call: Call, pairs: list[str]) -> Answer:
        values = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if set(values) - set(_DEFAULTS) or not all(value.isdecimal() for value in values.values()):
            raise Refused(f"settings {values}")
        if call.uid != 0:
            return Answer(err="Must be run as root to modify settings\n", code=77)
        numbers = {key: int(value) for key, value in values.items()}
        self.file.write_text(json.dumps({**self._values(), **numbers}))
        return Answer()
