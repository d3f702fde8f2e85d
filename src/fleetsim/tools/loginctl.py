"""`loginctl`: enables and disables lingering of the machine's own user, which needs no root."""

from dataclasses import dataclass
from pathlib import Path

from fleetsim.tools.calls import Answer, Call, Refused, parse_options

_FLAGS = {"--value": "value", "--no-pager": "no-pager", "--no-legend": "no-legend"}
_VALUES = {"-p": "property", "--property": "property"}


@dataclass(frozen=True, slots=True)
class Loginctl:
    user: str
    uid: int
    linger: Path
    """A file that exists while the user lingers; systemd has one in /var/lib."""

    def __call__(self, call: Call) -> Answer:
        words, options = parse_options(call.arguments, _FLAGS, _VALUES)
        verb, *users = words or [""]
        for user in users:
            if user not in (self.user, str(self.uid)):
                return Answer(err=f"Failed to look up user {user}: No such process\n", code=1)
        match verb:
            case "enable-linger":
                self.linger.touch()
            case "disable-linger":
                self.linger.unlink(missing_ok=True)
            case "show-user" if users:
                return self._show(options)
            case _:
                raise Refused(f"verb {verb}")
        return Answer()

    def _show(self, options: dict[str, list[str]]) -> Answer:
        known = {
            "UID": str(self.uid),
            "Name": self.user,
            "State": "active",
            "Linger": "yes" if self.linger.exists() else "no",
        }
        # unlike systemctl, loginctl takes no comma-separated list
        wanted = options.get("property", [])
        if set(wanted) - set(known):
            raise Refused(f"properties {' '.join(wanted)}")
        chosen = {key: value for key, value in known.items() if key in wanted or not wanted}
        if "value" in options:
            return Answer("".join(f"{value}\n" for value in chosen.values()))
        return Answer("".join(f"{key}={value}\n" for key, value in chosen.items()))
