"""`systemctl`: the verbs that fleetctl uses. The system manager is read-only."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetsim.systemd.manager import JobFailed, Manager
from fleetsim.systemd.service import Service
from fleetsim.tools.calls import Answer, Call, Refused, parse_options

VERSION = "252"
_FLAGS = {
    "--user": "user",
    "--system": "system",
    "--no-pager": "no-pager",
    "--quiet": "quiet",
    "-q": "quiet",
    "--full": "full",
    "-l": "full",
    "--value": "value",
    "--now": "now",
    "--runtime": "runtime",
    "--no-ask-password": "no-ask-password",
    "--version": "version",
}
_VALUES = {"-p": "property", "--property": "property", "-P": "property-value"}
_OUTDATED = """\
# Warning: {} changed on disk, the version systemd has loaded is outdated.
# This output shows the current version of the unit's original fragment and drop-in files.
# If fragments or drop-ins were added or removed, they are not properly reflected in this output.
# Run 'systemctl --user daemon-reload' to reload units.
"""
_CHANGES = ("start", "stop", "restart", "try-restart")
_OTHER_CHANGES = ("daemon-reload", "reset-failed")
_FILE_CHANGES = ("enable", "disable", "mask", "unmask")


@dataclass(frozen=True, slots=True)
class Systemctl:
    user: Callable[[], Manager | None]
    """The user's manager; None after it has ended because the user logged out and does not
    linger."""
    system: Callable[[], Manager]
    runtime: str
    """The user's runtime folder; without it in XDG_RUNTIME_DIR the user's manager is
    unreachable."""

    def __call__(self, call: Call) -> Answer:
        words, options = parse_options(call.arguments, _FLAGS, _VALUES)
        if "version" in options:
            return Answer(f"systemd {VERSION} ({VERSION}.39-1~deb12u2)\n+PAM +AUDIT\n")
        if not words:
            raise Refused("no verb")
        if "user" in options and call.environment.get("XDG_RUNTIME_DIR") != self.runtime:
            return Answer(err="Failed to connect to bus: No medium found\n", code=1)
        verb, *names = words
        units = [name if "." in name else f"{name}.service" for name in names]
        if any(not unit.endswith(".service") for unit in units):
            raise Refused("units other than services")
        if "user" not in options and verb in (*_CHANGES, *_FILE_CHANGES, *_OTHER_CHANGES):
            return _access_denied(verb, units)
        manager = self.user() if "user" in options else self.system()
        if manager is None:
            return Answer(err="Failed to connect to bus: No such file or directory\n", code=1)
        properties = options.get("property", []) + options.get("property-value", [])
        wanted = [name for group in properties for name in group.split(",")]
        value_only = "value" in options or "property-value" in options
        quiet = "quiet" in options
        try:
            match verb:
                case "show":
                    return _show(manager, units, wanted, value_only)
                case "cat":
                    return _cat(manager, units)
                case "is-active" | "is-failed":
                    return _is(manager, units, verb.removeprefix("is-"), quiet)
                case "is-enabled":
                    return _is_enabled(manager, units, quiet)
                case "is-system-running" if not units:
                    state = manager.state
                    return Answer(
                        "" if quiet else f"{state}\n", code=0 if state == "running" else 1
                    )
                case "daemon-reload" if not units:
                    manager.reload()
                    return Answer()
                case "reset-failed":
                    for unit in units or [""]:
                        manager.reset_failed(unit)
                    return Answer()
                case _ if verb in _CHANGES and units:
                    return _change(manager, verb, units)
                case _ if verb in _FILE_CHANGES and units:
                    return _change_files(manager, verb, units, options)
        except JobFailed as error:
            return Answer(err=f"{error}\n", code=error.code)
        raise Refused(f"verb {verb}")


def _access_denied(verb: str, units: list[str]) -> Answer:
    """The answer of the system manager to a caller without root."""
    what = {"daemon-reload": "Reload daemon failed", "reset-failed": "Failed to reset failed state"}
    default = f"Failed to {verb} {'unit' if verb in _FILE_CHANGES else units[0]}"
    reason = "Interactive authentication required."
    return Answer(err=f"{what.get(verb, default)}: {reason}\n", code=1)


def _change(manager: Manager, verb: str, units: list[str]) -> Answer:
    warnings = "".join(_reload_warning(manager, unit) for unit in units)
    for unit in units:
        if verb == "try-restart":
            with manager.service(unit) as service:
                if service.idle:
                    continue
        {"start": manager.start, "stop": manager.stop}.get(verb, manager.restart)(unit)
    return Answer(err=warnings)


def _change_files(
    manager: Manager, verb: str, units: list[str], options: dict[str, list[str]]
) -> Answer:
    runtime = "runtime" in options
    messages = ""
    for unit in units:
        match verb:
            case "enable":
                messages += manager.enable(unit)
            case "disable":
                messages += manager.disable(unit)
            case "mask":
                messages += manager.mask(unit, runtime=runtime)
            case "unmask":
                messages += manager.unmask(unit, runtime=runtime)
        if "now" in options and verb != "unmask":
            manager.start(unit) if verb == "enable" else manager.stop(unit)
    return Answer(err=messages)


def _is(manager: Manager, units: list[str], wanted: str, quiet: bool) -> Answer:
    states = []
    for unit in units:
        with manager.service(unit) as service:
            states.append(service.state.active)
    code = 0 if wanted in states else 3 if wanted == "active" else 1
    return Answer("" if quiet else "".join(f"{state}\n" for state in states), code=code)


def _is_enabled(manager: Manager, units: list[str], quiet: bool) -> Answer:
    out = err = ""
    code = 1
    for unit in units:
        state = manager.file_state(unit)
        if not state:
            err += f"Failed to get unit file state for {unit}: No such file or directory\n"
            continue
        out += "" if quiet else f"{state}\n"
        code = 0 if state in ("enabled", "static") else code
    return Answer(out, err, code)


def _cat(manager: Manager, units: list[str]) -> Answer:
    texts, warnings = [], ""
    for name in units:
        with manager.service(name) as service:
            unit = service.unit
        if not unit.fragment:
            return Answer(err=f"No files found for {name}.\n", code=1)
        if manager.needs_reload(name):
            warnings += _OUTDATED.format(name)
        for path in (unit.fragment, *unit.drop_ins):
            file = Path(path)
            texts.append(f"# {path}\n{file.read_text()}" if file.exists() else f"# {path}\n")
    return Answer("\n".join(texts), warnings)


def _reload_warning(manager: Manager, unit: str) -> str:
    if not manager.needs_reload(unit):
        return ""
    return (
        f"Warning: The unit file, source configuration file or drop-ins of {unit} changed on disk. "
        "Run 'systemctl --user daemon-reload' to reload units.\n"
    )


def _show(manager: Manager, units: list[str], wanted: list[str], value_only: bool) -> Answer:
    if not units:
        return _show_manager(manager, wanted, value_only)
    blocks = []
    for name in units:
        file_state, stale = manager.file_state(name), manager.needs_reload(name)
        with manager.service(name) as service:
            known = _properties(service, file_state, stale)
        if unknown := set(wanted) - {key for key, _ in known}:
            raise Refused(f"properties {' '.join(sorted(unknown))}")
        # systemd prints properties in its own order, and empty ones only if requested
        chosen = [(key, value) for key, value in known if key in wanted or (value and not wanted)]
        # these two have no line at all when empty
        unlisted = ("EnvironmentFiles", "ExecStart")
        chosen = [(key, value) for key, value in chosen if value or key not in unlisted]
        blocks.append("".join(f"{v}\n" if value_only else f"{k}={v}\n" for k, v in chosen))
    return Answer("\n".join(blocks))


def _show_manager(manager: Manager, wanted: list[str], value_only: bool) -> Answer:
    known = {"Version": f"{VERSION}.39-1~deb12u2", "SystemState": manager.state}
    if not wanted or set(wanted) - set(known):
        raise Refused("properties of the manager")
    chosen = [(key, value) for key, value in known.items() if key in wanted]
    return Answer("".join(f"{v}\n" if value_only else f"{k}={v}\n" for k, v in chosen))


def _properties(service: Service, file_state: str, stale: bool) -> list[tuple[str, str]]:
    """All simulated properties, in the order in which systemd prints them."""
    unit, state = service.unit, service.state
    files = [
        (f"{file.path} (ignore_errors={'yes' if file.optional else 'no'})")
        for file in unit.environment_files
    ]
    return [
        ("Type", unit.type),
        ("Restart", unit.restart),
        ("RestartUSec", _span(unit.restart_seconds)),
        ("TimeoutStopUSec", _span(unit.stop_seconds)),
        ("MainPID", str(state.main_pid)),
        ("Result", state.result),
        ("NRestarts", str(state.restarts)),
        ("ExecMainStartTimestampMonotonic", str(state.started)),
        ("ExecMainExitTimestampMonotonic", str(state.exited)),
        ("ExecMainPID", str(state.exec_pid)),
        ("ExecMainCode", str(state.exec_code)),
        ("ExecMainStatus", str(state.exec_status)),
        ("ExecStart", _exec_start(service)),
        ("Environment", " ".join(_quoted(f"{k}={v}") for k, v in unit.environment.items())),
        *(("EnvironmentFiles", file) for file in files or [""]),
        ("WorkingDirectory", unit.working_directory),
        ("User", ""),
        ("Id", unit.name),
        ("Names", unit.name),
        ("Description", unit.description or unit.name),
        ("LoadState", unit.load_state),
        ("ActiveState", state.active),
        ("SubState", state.sub),
        ("FragmentPath", unit.fragment),
        ("DropInPaths", " ".join(unit.drop_ins)),
        ("UnitFileState", file_state or ("bad" if unit.fragment else "")),
        ("StateChangeTimestampMonotonic", str(state.changed)),
        ("ActiveEnterTimestampMonotonic", str(state.started)),
        ("NeedDaemonReload", "yes" if stale else "no"),
        ("InvocationID", state.invocation),
    ]


def _quoted(word: str) -> str:
    """Quote a word of a list as systemd does: only where a shell needs it."""
    if not set(word) & set(" \t\n\r\"\\`$*?['()<>|&;!"):
        return word
    for plain, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t")):
        word = word.replace(plain, escaped)
    for character in '"`$':
        word = word.replace(character, f"\\{character}")
    return f'"{word}"'


def _exec_start(service: Service) -> str:
    argv, state = service.unit.argv, service.state
    if not argv:
        return ""
    return (
        f"{{ path={argv[0]} ; argv[]={' '.join(argv)} ; ignore_errors=no ; start_time=[n/a] ; "
        f"stop_time=[n/a] ; pid={state.exec_pid} ; code=(null) ; status=0/0 }}"
    )


def _span(seconds: float) -> str:
    if seconds == float("inf"):
        return "infinity"
    minutes, rest = divmod(round(seconds * 1000), 60_000)
    whole, milliseconds = divmod(rest, 1000)
    parts = ((minutes, "min"), (whole, "s"), (milliseconds, "ms"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number) or "0"
