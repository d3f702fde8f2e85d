"""Tools of a Mac that read files: `plutil`, `stat -f` and `sqlite3 -readonly`."""

import base64
import json
import os
import plistlib
import re
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from fleetsim.tools.calls import Answer, Call, Refused, parse_short_options

CONSOLE = "/dev/console"
_KINDS = {
    stat.S_IFREG: "Regular File",
    stat.S_IFDIR: "Directory",
    stat.S_IFLNK: "Symbolic Link",
    stat.S_IFCHR: "Character Device",
    stat.S_IFSOCK: "Socket",
    stat.S_IFIFO: "Fifo File",
}


def plutil(call: Call) -> Answer:
    match call.arguments:
        case ["-lint", *names] if names:
            return _lint(call, [name for name in names if name != "--"])
        case ["-s", "-lint", *names] | ["-lint", "-s", *names]:
            answer = _lint(call, names)
            bad = [line for line in answer.out.splitlines() if not line.endswith(": OK")]
            return Answer("".join(f"{line}\n" for line in bad), code=answer.code)
        case ["-extract", path, form, "-o", "-", name]:
            return _extract(call, path, form, name)
        case ["-convert", form, "-o", "-", name]:
            return _convert(call, form, name)
        case ["-convert", form, "-o", target, name]:
            answer = _convert(call, form, name)
            if answer.code == 0:
                _file(call, target).write_text(answer.out)
            return Answer(err=answer.err, code=answer.code)
    raise Refused("this form of plutil")


def _file(call: Call, name: str) -> Path:
    if name.startswith("-"):
        raise Refused(f"{name} as a file")
    return call.folder / name


def _read(call: Call, name: str) -> Any:
    """Raises ValueError with plutil's reason."""
    path = _file(call, name)
    if not path.exists():
        raise ValueError("file does not exist or is not readable or is not a regular file")
    try:
        return plistlib.loads(path.read_bytes())
    except (plistlib.InvalidFileException, ExpatError, ValueError) as error:
        raise ValueError(f"Property List error: {error}") from None


def _lint(call: Call, names: list[str]) -> Answer:
    out, code = "", 0
    for name in names:
        try:
            _read(call, name)
            out += f"{name}: OK\n"
        except ValueError as error:
            out += f"{name}: {error}\n"
            code = 1
    return Answer(out, code=code)


def _extract(call: Call, path: str, form: str, name: str) -> Answer:
    try:
        value = _read(call, name)
    except ValueError as error:
        return Answer(err=f"{name}: {error}\n", code=1)
    # a dot separates keys, unless it is escaped by a backslash
    for key in path.replace("\\.", "\0").split("."):
        key = key.replace("\0", ".")  # noqa: PLW2901
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            reason = f"No value at that key path or invalid key path: {path}"
            return Answer(err=f"{name}: Could not extract value, error: {reason}\n", code=1)
    return Answer(_format(value, form))


def _convert(call: Call, form: str, name: str) -> Answer:
    try:
        return Answer(_format(_read(call, name), form))
    except ValueError as error:
        return Answer(err=f"{name}: {error}\n", code=1)


def _format(value: Any, form: str) -> str:
    match form:
        case "raw":
            return f"{_raw(value)}\n"
        case "json":
            return json.dumps(value, separators=(",", ":"))
        case "xml1":
            return plistlib.dumps(value).decode()
    raise Refused(f"form {form}")


def _raw(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "\n".join(value)
        case list():
            return str(len(value))
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value)


@dataclass(frozen=True, slots=True)
class Stat:
    names: Mapping[int, str]
    console: Callable[[], int]
    """Uid of the owner of /dev/console; root if no user is logged in."""

    def __call__(self, call: Call) -> Answer:
        given, files = parse_short_options(call.arguments, "Lnf:", "stat")
        formats = [value for flag, value in given if flag == "-f"]
        flags = {flag for flag, _ in given}
        if not formats or not files:
            raise Refused("stat without -f, or without a file")
        out = err = ""
        for name in files:
            path = call.folder / name
            try:
                status = path.stat() if "-L" in flags else path.lstat()
            except OSError as error:
                err += f"stat: {name}: stat: {error.strerror}\n"
                continue
            out += self._format(formats[-1], name, status) + ("" if "-n" in flags else "\n")
        return Answer(out, err, code=1 if err else 0)

    def _format(self, form: str, name: str, status: os.stat_result) -> str:
        uid = self.console() if name == CONSOLE else status.st_uid
        known = {
            "%u": str(uid),
            "%Su": self.names.get(uid, str(uid)),
            "%g": str(status.st_gid),
            "%Lp": f"{stat.S_IMODE(status.st_mode) & 0o777:o}",
            "%OLp": f"{stat.S_IMODE(status.st_mode) & 0o777:o}",
            "%Mp": f"{(status.st_mode >> 9) & 0o7:o}",
            "%p": f"{status.st_mode:o}",
            "%Sp": stat.filemode(status.st_mode),
            "%z": str(status.st_size),
            "%m": str(int(status.st_mtime)),
            "%a": str(int(status.st_atime)),
            "%c": str(int(status.st_ctime)),
            "%i": str(status.st_ino),
            "%d": str(status.st_dev),
            "%l": str(status.st_nlink),
            "%N": name,
            "%HT": _KINDS.get(stat.S_IFMT(status.st_mode), "???"),
            "%n": "\n",
            "%t": "\t",
            "%%": "%",
        }

        def value(found: re.Match[str]) -> str:
            if found[0] not in known:
                raise Refused(f"format {found[0]}")
            return known[found[0]]

        return re.sub(r"%([HLMSO]*[A-Za-z%])?", value, form)


def sqlite3_tool(call: Call) -> Answer:
    separator, readonly, arguments = "|", False, list(call.arguments)
    while arguments and arguments[0].startswith("-"):
        match arguments.pop(0):
            case "-readonly":
                readonly = True
            case "-batch" | "-noheader" | "-list":
                pass
            case "-separator" if arguments:
                separator = arguments.pop(0)
            case option:
                raise Refused(f"option {option}")
    if len(arguments) != 2 or not readonly:
        raise Refused("anything but -readonly DATABASE SQL")
    database = call.folder / arguments[0]
    if not database.exists():
        message = f'Error: unable to open database "{database}": unable to open database file\n'
        return Answer(err=message, code=1)
    with tempfile.TemporaryDirectory() as folder:
        copy = _open_copy(database, Path(folder))
        try:
            rows = copy.execute(arguments[1]).fetchall()
        except sqlite3.Error as error:
            return Answer(err=f"Error: in prepare, {error}\n", code=1)
        finally:
            copy.close()
    shown = (separator.join("" if one is None else str(one) for one in row) for row in rows)
    return Answer("".join(f"{row}\n" for row in shown))


def _open_copy(database: Path, folder: Path) -> sqlite3.Connection:
    """Open a copy, including the write-ahead log; opening the original would leave files beside
    it."""
    for suffix in ("", "-wal"):
        part = Path(f"{database}{suffix}")
        if part.exists():
            shutil.copy(part, folder / part.name)
    return sqlite3.connect(folder / database.name)
