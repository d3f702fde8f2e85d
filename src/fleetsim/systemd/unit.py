"""A unit as systemd loads it: the unit file, its drop-ins in order, and the resulting settings.

Settings that affect how a service runs and that are not simulated are refused, not skipped."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fleetsim.systemd.syntax import BadSyntax, UnknownSpecifier, expand, split

_LISTS = ("Environment", "EnvironmentFile", "ExecStart", "WantedBy", "UnsetEnvironment")
_SETTINGS = {
    "Service": (
        "Environment", "EnvironmentFile", "ExecStart", "Restart", "RestartSec", "TimeoutStopSec",
        "Type", "WorkingDirectory", "UnsetEnvironment",
    ),
    "Unit": ("StartLimitBurst", "StartLimitIntervalSec", "Description"),
    "Install": ("WantedBy",),
}  # fmt: skip
_NOT_SIMULATED = (
    "User", "Group", "DynamicUser", "PassEnvironment", "ExecCondition", "ExecStartPre",
    "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost", "KillMode", "KillSignal", "PIDFile",
    "RemainAfterExit", "RuntimeMaxSec", "SuccessExitStatus", "RestartPreventExitStatus",
    "StandardInput", "StandardOutput", "StandardError", "RuntimeDirectory", "StateDirectory",
    "LogsDirectory", "RootDirectory", "ProtectSystem", "ProtectHome", "PrivateTmp",
    "LoadCredential", "SetCredential", "WatchdogSec", "Requires", "BindsTo", "PartOf",
    "Conflicts", "OnFailure", "RequiredBy", "Also", "DefaultInstance",
)  # fmt: skip
_RESTARTS = (
    "no", "always", "on-failure", "on-success", "on-abnormal", "on-watchdog", "on-abort",
)  # fmt: skip
_TIMES = ("RestartSec", "TimeoutStopSec", "StartLimitIntervalSec")
_WITHOUT_EFFECT = {
    "Service": ("SyslogIdentifier", "LimitNOFILE", "Nice", "OOMScoreAdjust", "TimeoutStartSec"),
    "Unit": ("After", "Before", "Wants", "Documentation", "ConditionPathExists"),
    "Install": ("Alias",),
}
_SECTIONS = (*_SETTINGS, "Slice", "X-Fleetctl")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")
_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "min": 60.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class EnvironmentFile:
    path: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    load_state: str
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    stamps: tuple[tuple[str, int], ...] = ()
    """Files and their modification times when they were read; if these differ now, a reload is
    needed."""
    description: str = ""
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_files: tuple[EnvironmentFile, ...] = ()
    unset: tuple[str, ...] = ()
    type: str = "simple"
    restart: str = "no"
    restart_seconds: float = 0.1
    stop_seconds: float = 90.0
    working_directory: str = ""
    start_limit_burst: int = 5
    start_limit_seconds: float = 10.0
    wanted_by: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings about the files, as `systemd-analyze verify` and the journal print them."""


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The folders of unit files, highest priority first, and the values of specifiers."""

    folders: tuple[Path, ...]
    specifiers: Mapping[str, str]
    refuse: Callable[[str], None]

    def files(self, name: str) -> tuple[Path | None, list[Path]]:
        fragment = next((f / name for f in self.folders if _exists(f / name)), None)
        drop_ins: dict[str, Path] = {}
        for folder in reversed(self.folders):
            for kind in (folder / "service.d", folder / f"{name}.d"):
                drop_ins |= {path.name: path for path in sorted(kind.glob("*.conf"))}
        return fragment, [drop_ins[key] for key in sorted(drop_ins)]

    def stamps(self, name: str) -> tuple[tuple[str, int], ...]:
        fragment, drop_ins = self.files(name)
        paths = [*([fragment] if fragment else []), *drop_ins]
        return tuple((str(path), path.stat().st_mtime_ns) for path in paths)


def load(name: str, search: SearchPath) -> Unit:
    stamps = search.stamps(name)
    fragment, drop_ins = search.files(name)
    if fragment is None:
        return Unit(name, "not-found", type="")
    if fragment.resolve() == Path("/dev/null"):
        return Unit(name, "masked", fragment=str(fragment), stamps=stamps)
    stem = name.removesuffix(".service")
    reader = _Reader(search, {**search.specifiers, "n": name, "N": stem, "p": stem, "i": ""})
    for path in (fragment, *drop_ins):
        reader.read(path)
    return reader.unit(name, str(fragment), tuple(map(str, drop_ins)), stamps)


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


class _Reader:
    """Collects assignments file by file: a later one wins, an empty one clears a list."""

    def __init__(self, search: SearchPath, specifiers: Mapping[str, str]) -> None:
        self._refuse = search.refuse
        self._specifiers = specifiers
        self._lists: dict[str, list[str]] = {key: [] for key in _LISTS}
        self._single: dict[str, str] = {}
        self._environment: dict[str, str] = {}
        self._warnings: list[str] = []

    def read(self, path: Path) -> None:
        section = ""
        for number, line in _logical_lines(path.read_text(encoding="utf-8", errors="replace")):
            where = f"{path}:{number}"
            if line.startswith("["):
                section = line.strip("[]")
                if section not in _SECTIONS:
                    self._warn(where, f"Unknown section '{section}'. Ignoring.")
                continue
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals:
                self._warn(where, "Missing '=', ignoring line.")
            elif not section:
                self._warn(where, "Assignment outside of section. Ignoring.")
            else:
                self._assign(where, section, key, value)

    def unit(
        self, name: str, fragment: str, drop_ins: tuple[str, ...], stamps: Sequence[tuple[str, int]]
    ) -> Unit:
        single = self._single
        argv = self._argv()
        kind, restart = single.get("Type", "simple"), single.get("Restart", "no")
        if kind not in ("simple", "exec"):
            self._refuse(f"{name}: Type={kind} is not simulated")
        if restart not in ("no", "always", "on-failure"):
            self._refuse(f"{name}: Restart={restart} is not simulated")
        if any(set(path) & set("*?[") for path in self._lists["EnvironmentFile"]):
            self._refuse(f"{name}: patterns in EnvironmentFile= are not simulated")
        files = [
            EnvironmentFile(f.removeprefix("-"), f[:1] == "-")
            for f in self._lists["EnvironmentFile"]
        ]
        return Unit(
            name=name,
            load_state="loaded" if argv else "bad-setting",
            fragment=fragment,
            drop_ins=drop_ins,
            stamps=tuple(stamps),
            description=single.get("Description", name),
            argv=argv,
            environment=dict(self._environment),
            environment_files=tuple(files),
            unset=tuple(self._lists["UnsetEnvironment"]),
            type=kind,
            restart=restart,
            restart_seconds=_seconds(single.get("RestartSec", "100ms")),
            stop_seconds=_seconds(single.get("TimeoutStopSec", "90")),
            # `!` is systemd's own mark: a missing home does not prevent the start
            working_directory=single.get("WorkingDirectory", f"!{self._specifiers['h']}"),
            start_limit_burst=int(single.get("StartLimitBurst", "5")),
            start_limit_seconds=_seconds(single.get("StartLimitIntervalSec", "10")),
            wanted_by=tuple(self._lists["WantedBy"]),
            warnings=tuple(self._warnings),
        )

    def _assign(self, where: str, section: str, key: str, value: str) -> None:
        if section not in _SETTINGS or key in _WITHOUT_EFFECT[section]:
            return
        if key in _NOT_SIMULATED:
            self._refuse(f"{where}: {key}= is not simulated")
        elif key not in _SETTINGS[section]:
            self._warn(where, f"Unknown key '{key}' in section [{section}], ignoring.")
        elif key in _LISTS and not value:
            self._lists[key].clear()
            if key == "Environment":
                self._environment.clear()
        elif problem := self._problem(key, value):
            self._warn(where, f"{problem}, ignoring: {value}")
        elif key == "Environment":
            self._assign_environment(where, value)
        elif key in _LISTS:
            self._lists[key] += [value] if key == "ExecStart" else split(self._expanded(value))
        else:
            self._single[key] = self._expanded(value)

    def _problem(self, key: str, value: str) -> str:
        """What is wrong with a value as a whole, in systemd's words; empty if nothing."""
        try:
            split(value)
            if key in _TIMES:
                _seconds(value)
        except BadSyntax as error:
            return str(error)
        if key == "Restart" and value not in _RESTARTS:
            return "Failed to parse service restart specifier"
        if key == "EnvironmentFile" and not self._expanded(value).removeprefix("-").startswith("/"):
            return "EnvironmentFile= path is not absolute"
        return ""

    def _assign_environment(self, where: str, value: str) -> None:
        for word in split(value):
            try:
                name, equals, content = expand(word, self._specifiers).partition("=")
            except UnknownSpecifier as error:
                self._warn(where, f"Failed to resolve specifiers in {word}, ignoring: {error}")
                continue
            if not equals or not valid_variable(name, content):
                self._warn(where, f"Invalid environment assignment, ignoring: {word}")
                continue
            self._environment[name] = content

    def _expanded(self, value: str) -> str:
        try:
            return expand(value, self._specifiers)
        except UnknownSpecifier:
            self._refuse(f"specifiers in {value} are not simulated")
            return value

    def _argv(self) -> tuple[str, ...]:
        if len(self._lists["ExecStart"]) != 1:
            return ()
        [line] = self._lists["ExecStart"]
        if line[:1] in "@+!:|" or "$" in line:
            self._refuse(f"ExecStart={line}: prefixes and variables are not simulated")
        return tuple(self._expanded(word) for word in split(line.removeprefix("-")))

    def _warn(self, where: str, what: str) -> None:
        self._warnings.append(f"{where}: {what}")


def valid_variable(name: str, value: str) -> bool:
    control = any(
        character < " " or character == "\x7f" for character in value if character not in "\t\n"
    )
    return _NAME.fullmatch(name) is not None and not control


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers. A trailing backslash joins lines; comments are dropped, also
    between joined lines."""
    lines: list[tuple[int, str]] = []
    pending = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip() if not pending else raw.rstrip("\n")
        if line.lstrip()[:1] in ("#", ";") or (not pending and not line):
            continue
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        lines.append((number, pending.strip()))
        pending = ""
    return [*lines, (len(text.splitlines()), pending.strip())] if pending else lines


def _seconds(text: str) -> float:
    if text == "infinity":
        return float("inf")
    total, position = 0.0, 0
    while part := _TIME.match(text, position):
        if part.group(2) not in _UNITS:
            break
        total += float(part.group(1)) * _UNITS[part.group(2)]
        position = part.end()
    if position < len(text.rstrip()) or not text:
        raise BadSyntax("Failed to parse time value")
    return total
