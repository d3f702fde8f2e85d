"""systemd: how a service is described, asked about and controlled as a unit."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from fleetctl.codecs import systemd_env_file
from fleetctl.model.facts import (
    LARGEST_FILE,
    Answer,
    Answers,
    File,
    Mode,
    Scope,
    Service,
    ServiceFile,
    ServiceSpec,
    Source,
    Unknown,
)
from fleetctl.shell import Question, files_in, in_shell, library, quote
from fleetctl.shell.transaction import Supervisor

MODES: tuple[Mode, ...] = ("system", "user")

_DROP_IN = "zz-fleetctl.conf"
"""Drop-ins are read in the order of their names, so that ours comes last."""
_FOLDERS: Mapping[Scope, tuple[str, str]] = {
    "system": ("/etc/fleetctl", "/etc/systemd/system"),
    "user": ("~/.config/fleetctl", "~/.config/systemd/user"),
}
_SHELL = library(__file__, "systemd.sh")


def describe(service: ServiceSpec) -> Iterator[ServiceSpec]:
    """The service as a unit of the system, and as one of the user: an environment file of ours,
    and a drop-in that names it."""
    for scope, (ours, units) in _FOLDERS.items():
        unit = _unit(service)
        values = ServiceFile(
            f"{ours}/{service.name}.env", "systemd/service.env", systemd_env_file.decode
        )
        drop_in = ServiceFile(f"{units}/{unit}.d/{_DROP_IN}", "systemd/drop-in.conf", defines=True)
        yield replace(service, mode=scope, scope=scope, files=(values, drop_in), log="")


def _unit(service: ServiceSpec) -> str:
    return f"{service.name}.service"


def questions(specs: Sequence[ServiceSpec]) -> list[Question]:
    return [
        Question(
            _key(spec),
            f"ask_unit {spec.scope} {_unit(spec)} {LARGEST_FILE + 1} "
            f"{quote(chr(10).join(spec.log_marks))} "
            + " ".join(in_shell(file.path) for file in spec.files),
            os="linux",
            library=_SHELL,
            for_root=spec.scope == "system",
        )
        for spec in specs
    ]


def _key(spec: ServiceSpec) -> str:
    return f"systemd {spec.name} {spec.scope}"


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    scope, unit = service.scope, _unit(service.spec)
    systemctl = f"systemctl --{scope}"
    return Supervisor(
        library=f"{_SHELL}\nuser_runtime",
        verify=f"verify_unit {scope} {unit} {_DROP_IN}",
        reload=f"{systemctl} daemon-reload",
        enable=f"{systemctl} enable {unit}",
        disable=f"{systemctl} disable {unit}",
        restart=f"restart_unit {scope} {unit}",
        stop=f"{systemctl} stop {unit}",
        log=f"unit_log {scope} {unit}",
        manual=(f"{systemctl} daemon-reload", f"{systemctl} restart {unit}"),
    )


def read(specs: Sequence[ServiceSpec], answers: Answers) -> Iterator[Service]:
    """In each scope in which systemd answers, whether or not it knows the unit."""
    for spec in specs:
        answer = answers.get(_key(spec))
        if answer is not None and answer.status == 0:
            yield _service(spec, answer)


def _service(spec: ServiceSpec, answer: Answer) -> Service:
    values: dict[str, list[str]] = {}
    for line in answer.text.splitlines():
        key, _, value = line.partition("=")
        values.setdefault(key, []).append(value)

    def first(key: str) -> str:
        return values.get(key, [""])[0]

    def number(key: str) -> int:
        return int(first(key)) if first(key).isdecimal() else 0

    files = files_in(answer)
    pid = number("MainPID")
    return Service(
        spec=spec,
        loaded=first("LoadState") == "loaded",
        preference=spec.scope == "system",
        blocked=f"the service of {spec.title} is masked" if first("LoadState") == "masked" else "",
        hint=f"systemctl --{spec.scope} unmask {_unit(spec)}, if it is not masked on purpose",
        enabled=first("UnitFileState") in ("enabled", "enabled-runtime", "linked", "static"),
        active=first("ActiveState") == "active",
        starting=first("ActiveState") == "activating",
        pid=pid or None,
        run=first("InvocationID"),
        restarts=number("NRestarts"),
        reload_pending=first("NeedDaemonReload") == "yes",
        definition=first("FragmentPath"),
        sources=tuple(_sources(spec, values, files)),
        environment=_environment(answer) if pid else Unknown("it does not run"),
        log=_log(answer) if pid else Unknown("it does not run"),
        files=files,
    )


def _sources(
    spec: ServiceSpec, values: Mapping[str, list[str]], files: Mapping[str, File]
) -> Iterator[Source]:
    """`Environment=` of the unit and its drop-ins in their order, then the environment files."""
    paths = [*values.get("FragmentPath", []), *" ".join(values.get("DropInPaths", [])).split()]
    for path in paths:
        settings: dict[str, str] = {}
        for line in _lines(files.get(path)):
            if found := re.match(r"Environment\s*=(.*)", line):
                settings.update(_assignments(found[1]))
        yield Source(path, settings)
        unset = dict.fromkeys(_unset(_lines(files.get(path))), "")
        if unset:
            yield Source(path, unset, wins=True)
    late = _named_late(paths, files)
    for entry in values.get("EnvironmentFiles", []):
        path = re.sub(r" \(ignore_errors=.*", "", entry)
        assigned = (_assignments(line) for line in _lines(files.get(path)))
        settings = {name: value for each in assigned for name, value in each.items()}
        ours = path.endswith(spec.files[0].path.removeprefix("~"))
        wins = not ours and any(path.endswith(name) for name in late)
        yield Source(path, settings, ours=ours, wins=wins)


def _named_late(paths: list[str], files: Mapping[str, File]) -> list[str]:
    """Environment files that are named after ours, and so take precedence over it."""
    late = [path for path in paths if PurePosixPath(path).name > _DROP_IN]
    lines = [line for path in late for line in _lines(files.get(path))]
    found = [re.match(r"EnvironmentFile\s*=\s*-?(?:%h)?(/.*)", line) for line in lines]
    return [match[1].strip() for match in found if match]


def _unset(lines: list[str]) -> Iterator[str]:
    """Variables that the service does not get, whichever file sets them."""
    for line in lines:
        if found := re.match(r"UnsetEnvironment\s*=(.*)", line):
            yield from (word.partition("=")[0] for word in found[1].split())


def _lines(file: File | None) -> list[str]:
    text = file.content if file and isinstance(file.content, str) else ""
    return [line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;"]


def _assignments(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text.replace("%%", "%"))
    except ValueError:
        words = text.split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def _environment(answer: Answer) -> Mapping[str, str] | Unknown:
    text = answer.section("environ")
    if not text:
        return Unknown("only root may read the environment of its process")
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def _log(answer: Answer) -> str | Unknown:
    return answer.section("log").strip() or Unknown("its log may not be read, or is gone")
