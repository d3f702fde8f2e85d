"""`ps`, `pgrep` and `pkill` of macOS."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fleetsim.mac.process_table import Process
from fleetsim.processes import parent_of
from fleetsim.tools.calls import Answer, Call, Refused, parse_short_options

Table = Callable[[], Iterator[Process]]

_HEADERS = {
    "pid": "PID",
    "ppid": "PPID",
    "pgid": "PGID",
    "uid": "UID",
    "user": "USER",
    "stat": "STAT",
    "lstart": "STARTED",
    "etime": "ELAPSED",
    "command": "COMMAND",
    "args": "ARGS",
    "comm": "COMM",
}
_WIDTHS = {"user": -8, "stat": -4, "lstart": -28, "etime": 11}


@dataclass(frozen=True, slots=True)
class Ps:
    table: Table
    names: Mapping[int, str]

    def __call__(self, call: Call) -> Answer:
        first, *rest = call.arguments or [""]
        # in the style without a dash, the letter e shows the environment
        old_style = first in ("eww", "ewwax", "axeww", "ax", "axww")
        given, words = parse_short_options(
            rest if old_style else call.arguments, "AaexEwp:o:", "ps"
        )
        if words:
            raise Refused(f"words {words}")
        flags = {flag for flag, _ in given}
        wanted = {int(pid) for flag, list_ in given if flag == "-p" for pid in list_.split(",")}
        columns = _columns([value for flag, value in given if flag == "-o"])
        all_processes = bool(flags & {"-A", "-a", "-e", "-x"}) or "ax" in first
        if not wanted and not all_processes:
            raise Refused("ps without -p or -ax, which depends on the terminal")
        shows_environment = "-E" in flags or (old_style and "e" in first)
        rows = [
            [self._cell(key, one, call, shows_environment) for key, _ in columns]
            for one in self.table()
            if one.pid in wanted or (not wanted and all_processes)
        ]
        header = [title for _, title in columns]
        lines = [header, *rows] if any(header) else rows
        keys = [key for key, _ in columns]
        return Answer("".join(_line(keys, cells) for cells in lines), code=0 if rows else 1)

    def _cell(self, key: str, one: Process, call: Call, shows_environment: bool) -> str:
        match key:
            case "pid" | "uid":
                return str(getattr(one, key))
            case "ppid":
                return str(one.parent)
            case "pgid":
                return str(one.group)
            case "user":
                return self.names.get(one.uid, str(one.uid))
            case "stat":
                return one.state
            case "lstart":
                return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(one.started))
            case "etime":
                return _elapsed(int(time.time()) - one.started)
            case "comm":
                return one.arguments[0]
        may_see = call.uid in (0, one.uid)
        pairs = [f"{name}={value}" for name, value in one.environment.items()]
        return " ".join([one.command, *(pairs if shows_environment and may_see else [])])


def _columns(lists: list[str]) -> list[tuple[str, str]]:
    words = [word for text in lists for word in text.split(",")]
    found = []
    for word in words or ["pid", "stat", "command"]:
        key, equals, title = word.partition("=")
        if key not in _HEADERS:
            raise Refused(f"keyword {key}")
        found.append((key, title if equals else _HEADERS[key]))
    return found


def _line(keys: list[str], cells: list[str]) -> str:
    padded = []
    for key, cell in zip(keys, cells, strict=True):
        width = 0 if key in ("command", "args", "comm") else _WIDTHS.get(key, 5)
        padded.append(cell.ljust(-width) if width < 0 else cell.rjust(width))
    return " ".join(padded) + "\n"


def _elapsed(seconds: int) -> str:
    minutes, seconds = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


@dataclass(frozen=True, slots=True)
class Pgrep:
    """Compares the last component of argv[0]; skips the caller and its ancestors."""

    table: Table
    names: Mapping[int, str]

    def __call__(self, call: Call) -> Answer:
        given, words = parse_short_options(call.arguments, "aflinoqxP:u:U:", "pgrep")
        flags = {flag for flag, _ in given}
        found = self.matching(call, given, words)
        if "-q" in flags:
            return Answer(code=0 if found else 1)
        lines = [_found_line(one, flags) for one in found]
        return Answer("".join(lines), code=0 if found else 1)

    def matching(self, call: Call, given: list[tuple[str, str]], words: list[str]) -> list[Process]:
        flags = {flag for flag, _ in given}
        if len(words) != 1:
            raise Refused(f"{len(words)} patterns")
        case = re.IGNORECASE if "-i" in flags else 0
        compare = re.fullmatch if "-x" in flags else re.search
        ancestors = set() if "-a" in flags else set(_ancestors(call.pid))
        users = [value for flag, value in given if flag in ("-u", "-U")]
        parents = [int(value) for flag, value in given if flag == "-P"]
        found = [
            one
            for one in self.table()
            if one.pid not in (call.pid, *ancestors)
            and (not users or {str(one.uid), self.names.get(one.uid)} & set(users))
            and (not parents or one.parent in parents)
            and compare(words[0], one.command if "-f" in flags else one.name, case)
        ]
        if "-n" in flags:
            return sorted(found, key=lambda one: one.started)[-1:]
        return sorted(found, key=lambda one: one.started)[:1] if "-o" in flags else found


def _found_line(one: Process, flags: set[str]) -> str:
    if "-l" not in flags:
        return f"{one.pid}\n"
    return f"{one.pid} {one.command if '-f' in flags else one.name}\n"


@dataclass(frozen=True, slots=True)
class Pkill:
    pgrep: Pgrep

    def __call__(self, call: Call) -> Answer:
        first, *rest = call.arguments or [""]
        number = _signal_named(first.removeprefix("-")) if first.startswith("-") else None
        arguments = rest if number else call.arguments
        given, words = parse_short_options(arguments, "aflinoxP:u:U:", "pkill")
        found = self.pgrep.matching(call, given, words)
        errors = ""
        for one in found:
            if call.uid not in (0, one.uid):
                errors += f"pkill: signalling pid {one.pid}: Operation not permitted\n"
                continue
            os.kill(one.pid, number or signal.SIGTERM)
        return Answer(err=errors, code=0 if found and not errors else 1)


def _signal_named(name: str) -> signal.Signals | None:
    if name.isdecimal():
        return signal.Signals(int(name))
    return signal.Signals.__members__.get(f"SIG{name.removeprefix('SIG')}")


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = parent_of(pid)
        yield pid
