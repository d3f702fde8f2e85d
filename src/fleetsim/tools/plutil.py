"""`plutil`: whether a plist is sound, one value of it, and other forms of it."""

import base64
import json
import plistlib
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from fleetsim.tools.calls import Answer, Call, Refused


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
            return _converted(call, form, name)
        case ["-convert", form, "-o", target, name]:
            answer = _converted(call, form, name)
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
    # a dot splits, unless a backslash stands before it
    for key in path.replace("\\.", "\0").split("."):
        key = key.replace("\0", ".")  # noqa: PLW2901
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            reason = f"No value at that key path or invalid key path: {path}"
            return Answer(err=f"{name}: Could not extract value, error: {reason}\n", code=1)
    return Answer(_formatted(value, form))


def _converted(call: Call, form: str, name: str) -> Answer:
    try:
        return Answer(_formatted(_read(call, name), form))
    except ValueError as error:
        return Answer(err=f"{name}: {error}\n", code=1)


def _formatted(value: Any, form: str) -> str:
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
