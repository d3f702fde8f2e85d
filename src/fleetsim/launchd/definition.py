"""The definition of a job, read from its plist. Keys that are not simulated are refused."""

import plistlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from fleetsim.launchd.variant import LaunchError

THROTTLE_SECONDS = 10
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "Label": str,
    "Program": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": bool,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "WorkingDirectory": str,
    "UserName": str,
    "LimitLoadToSessionType": (str, list),
    "ProcessType": str,
    "Umask": int,
    "Disabled": bool,
    "AbandonProcessGroup": bool,
}
_PROCESS_TYPES = ("Background", "Standard", "Adaptive", "Interactive")
_SESSIONS = ("Aqua", "Background", "LoginWindow", "StandardIO", "System")

Refuse = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Definition:
    path: str
    label: str
    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    run_at_load: bool
    keep_alive: bool
    throttle: int
    exit_timeout: int
    stdout: str
    stderr: str
    working_directory: str
    user: str
    sessions: tuple[str, ...]
    process_type: str
    umask: int
    disabled: bool
    abandons_group: bool
    inferred_program: bool

    @property
    def properties(self) -> str:
        named = {
            "keepalive": self.keep_alive,
            "runatload": self.run_at_load,
            "inferred program": self.inferred_program,
        }
        return " | ".join(name for name, has in named.items() if has)


def application(label: str, program: str, arguments: tuple[str, ...]) -> Definition:
    """An application started by `open`: a job without a plist, whose children outlive it."""
    values = {"Label": label, "RunAtLoad": True, "AbandonProcessGroup": True}
    return _definition("", values, program, (program, *arguments))


def read_definition(path: Path, refuse: Refuse) -> Definition:
    """Read a plist. Raises error 5, launchd's answer to any defect of a plist."""
    try:
        data = plistlib.loads(path.read_bytes())
    except (OSError, plistlib.InvalidFileException, ExpatError, ValueError):
        raise LaunchError(5) from None
    if not isinstance(data, dict):
        raise LaunchError(5)
    for key, value in data.items():
        _check(f"{path}: {key}", key, value, refuse)
    arguments = tuple(data.get("ProgramArguments", ()))
    program = data.get("Program") or (arguments[0] if arguments else "")
    if not data.get("Label") or not program:
        raise LaunchError(5)
    return _definition(str(path), data, program, arguments)


def _definition(
    path: str, data: Mapping[str, Any], program: str, arguments: tuple[str, ...]
) -> Definition:
    sessions = data.get("LimitLoadToSessionType", "Aqua")
    environment = data.get("EnvironmentVariables", {})
    return Definition(
        path=path,
        label=data["Label"],
        program=program,
        arguments=arguments or (program,),
        environment={key: value for key, value in environment.items() if isinstance(value, str)},
        run_at_load=data.get("RunAtLoad", False),
        keep_alive=data.get("KeepAlive", False),
        # launchd ignores 0
        throttle=data.get("ThrottleInterval", 0) or THROTTLE_SECONDS,
        exit_timeout=data.get("ExitTimeOut", 5),
        stdout=data.get("StandardOutPath", ""),
        stderr=data.get("StandardErrorPath", ""),
        working_directory=data.get("WorkingDirectory", ""),
        user=data.get("UserName", ""),
        sessions=(sessions,) if isinstance(sessions, str) else tuple(sessions),
        process_type=data.get("ProcessType", ""),
        umask=data.get("Umask", -1),
        disabled=data.get("Disabled", False),
        abandons_group=data.get("AbandonProcessGroup", False),
        inferred_program="Program" not in data,
    )


def _check(where: str, key: str, value: object, refuse: Refuse) -> None:
    """Refuse a key or value that launchd would reject or that is not simulated."""
    if key not in _TYPES:
        _refuse(f"{where} is not simulated", refuse)
    expected = _TYPES[key]
    # in Python, True is an int
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        _refuse(f"{where} with a value of type {type(value).__name__} is not simulated", refuse)
    strings = value if key in ("ProgramArguments", "LimitLoadToSessionType") else ()
    if isinstance(strings, list) and not all(isinstance(one, str) for one in strings):
        _refuse(f"{where} holds more than strings", refuse)
    if key == "LimitLoadToSessionType":
        types = [value] if isinstance(value, str) else strings
        if isinstance(types, list) and set(types) - set(_SESSIONS):
            _refuse(f"{where} names a session type that is not known", refuse)
    if key == "ProcessType" and value not in _PROCESS_TYPES:
        _refuse(f"{where} {value} is not known", refuse)
    if key == "EnvironmentVariables" and isinstance(value, dict):
        # launchd silently ignores such a value, so it is a mistake in the plist
        for name, text in value.items():
            if not isinstance(text, str):
                refuse(f"{where}: {name} is not a string")


def _refuse(what: str, refuse: Refuse) -> None:
    refuse(what)
    raise LaunchError(5)
