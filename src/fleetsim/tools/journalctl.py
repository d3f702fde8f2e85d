"""`journalctl --user`: entries of a unit, or of one invocation of it."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fleetsim.systemd.journal import Entry, Journal
from fleetsim.tools.calls import Answer, Call, Refused, parse_options

_FLAGS = {
    "--user": "user",
    "--no-pager": "no-pager",
    "--quiet": "quiet",
    "-q": "quiet",
    "-b": "boot",
    "--boot": "boot",
    "--no-hostname": "no-hostname",
    "-r": "reverse",
    "--reverse": "reverse",
}
_VALUES = {
    "-u": "unit",
    "--unit": "unit",
    "--user-unit": "unit",
    "-o": "output",
    "--output": "output",
    "-n": "lines",
    "--lines": "lines",
    "-S": "since",
    "--since": "since",
}
_MATCHES: dict[str, Callable[[Entry, str], bool]] = {
    # the manager's own messages about a unit have the id in another field
    "_SYSTEMD_INVOCATION_ID": lambda entry, value: (
        not entry.by_manager and entry.invocation == value
    ),
    "USER_INVOCATION_ID": lambda entry, value: entry.by_manager and entry.invocation == value,
    "_SYSTEMD_USER_UNIT": lambda entry, value: not entry.by_manager and entry.unit == value,
    "_PID": lambda entry, value: str(entry.pid) == value,
}


@dataclass(frozen=True, slots=True)
class Journalctl:
    journal: Journal
    boot: Callable[[], str]
    host: str

    def __call__(self, call: Call) -> Answer:
        words, options = parse_options(call.arguments, _FLAGS, _VALUES)
        entries: Iterable[Entry] = self.journal.entries() if "user" in options else ()
        if "boot" in options:
            boot = self.boot()
            entries = [entry for entry in entries if entry.boot == boot]
        if units := [_service(name) for name in options.get("unit", [])]:
            entries = [entry for entry in entries if entry.unit in units]
        for since in options.get("since", []):
            if not since.startswith("@"):
                raise Refused(f"time {since}")
            entries = [entry for entry in entries if entry.time >= float(since[1:])]
        for word in words:
            field, equals, value = word.partition("=")
            if not equals or field not in _MATCHES:
                raise Refused(f"match {word}")
            entries = [entry for entry in entries if _MATCHES[field](entry, value)]
        return self._print(list(entries), options)

    def _print(self, entries: list[Entry], options: dict[str, list[str]]) -> Answer:
        count = options.get("lines", ["all"])[-1]
        if count != "all":
            entries = entries[-int(count) :] if int(count) else []
        if "reverse" in options:
            entries.reverse()
        form = options.get("output", ["short"])[-1]
        if not entries and form != "cat" and "quiet" not in options:
            return Answer("-- No entries --\n")
        host = "" if "no-hostname" in options else f"{self.host} "
        return Answer("".join(_line(entry, form, host) for entry in entries))


def _service(name: str) -> str:
    return name if "." in name else f"{name}.service"


def _line(entry: Entry, form: str, host: str) -> str:
    if form == "cat":
        return f"{entry.text}\n"
    local = time.localtime(entry.time)
    stamps = {
        "short": time.strftime("%b %d %H:%M:%S", local),
        "short-iso": time.strftime("%Y-%m-%dT%H:%M:%S%z", local),
        "short-unix": f"{entry.time:.6f}",
    }
    if form not in stamps:
        raise Refused(f"output {form}")
    return f"{stamps[form]} {host}{entry.process}[{entry.pid}]: {entry.text}\n"
