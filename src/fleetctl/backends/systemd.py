"""systemd: how Ollama is described, asked about and restarted where it runs as a unit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import get_args

from fleetctl.backends.service_file import ServiceFile, files_in
from fleetctl.codecs import systemd_env_file
from fleetctl.model import server_log
from fleetctl.model.facts import File, Mode, Scope, Service, Source, Unknown
from fleetctl.shell import AS_ROOT, Part, Record
from fleetctl.shell.transaction import Supervisor

UNIT = "ollama.service"
_DROP_IN = "zz-fleetctl.conf"

FILES: Mapping[Mode, tuple[ServiceFile, ...]] = {
    "system": (
        ServiceFile("systemd/ollama.env", "/etc/fleetctl/ollama.env", systemd_env_file.decode),
        ServiceFile(
            "systemd/drop-in.conf", f"/etc/systemd/system/{UNIT}.d/{_DROP_IN}", defines=True
        ),
    ),
    "user": (
        ServiceFile("systemd/ollama.env", "~/.config/fleetctl/ollama.env", systemd_env_file.decode),
        ServiceFile(
            "systemd/drop-in.conf", f"~/.config/systemd/user/{UNIT}.d/{_DROP_IN}", defines=True
        ),
    ),
}
"""Drop-ins are read in the order of their names, so that ours comes last."""

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_PROPERTIES = (
    "LoadState,ActiveState,UnitFileState,FragmentPath,DropInPaths,EnvironmentFiles,MainPID,"
    "InvocationID,NRestarts,NeedDaemonReload"
)

_RUNTIME = """\
[ -n "${XDG_RUNTIME_DIR-}" ] || { XDG_RUNTIME_DIR=/run/user/$(id -u); export XDG_RUNTIME_DIR; }"""

# As few processes as can be: a machine's part of a check is mostly the starting of programs.
# The environment of a process and the journal may be for root only, which is asked last. The
# journal of a start begins with what is looked for.
_ASK = r"""
[ -d /run/systemd/system ] || [ -n "${{XDG_RUNTIME_DIR-}}" ] || exit 1
{runtime}
{as_root}
properties=$(systemctl {flag} show {unit} -p {properties}) || exit
printf '%s\n' "$properties"
pid=0 run=
set -f --
while IFS= read -r line; do
  value=${{line#*=}}
  case $line in
    (FragmentPath=*) set -- "$@" "$value";;
    (DropInPaths=*) set -- "$@" $value;;
    (EnvironmentFiles=*) set -- "$@" "${{value%%" (ignore_errors="*}}";;
    (MainPID=*) pid=$value;;
    (InvocationID=*) run=$value;;
  esac
done <<END
$properties
END
set -- "$@" {files}
for file do
  shift
  case " $* " in (*" $file "*) continue;; esac
  [ ! -e "$file" ] || set -- "$@" "$file"
done
[ $# = 0 ] || {{ section modes; ls -ldn "$@"; }}
for file do
  section "file $file"
  [ -f "$file" ] && {{ head -c 65536 "$file" 2>/dev/null || as_root head -c 65536 "$file"; }} ||
    echo @unreadable
done
[ "${{pid:-0}}" -gt 0 ] || exit 0
journal() {{
  said=$("$@" --quiet --no-pager --output=cat "_SYSTEMD_INVOCATION_ID=$run" 2>/dev/null |
    sed -n -e '/msg="server config"/p' -e 400q)
  [ -n "$said" ] && printf '%s\n' "$said"
}}
section environ
cat "/proc/$pid/environ" 2>/dev/null || as_root cat "/proc/$pid/environ"
section log
journal journalctl {flag} || {{ as_root true && journal sudo -n journalctl; }}
exit 0
"""


_VERIFY = """\
command -v systemd-analyze >/dev/null || return 0
! systemd-analyze --{scope} verify {unit} 2>&1 | grep -F {file}"""


# Where the journal is not kept over a boot, a user may not read what the user's own units say.
_LAST_WORDS = """\
last() {{ "$@" --lines=200 --quiet --no-pager --output=cat 2>/dev/null; }}
words=$(last journalctl --{scope} --unit={unit})
[ -n "$words" ] || words=$(last sudo -n journalctl _SYSTEMD_USER_UNIT={unit} "_UID=$(id -u)")
printf '%s\\n' "$words"
"""


def parts() -> list[Part]:
    return [
        Part(f"systemd {scope}", _ask(scope), system="Linux", for_root=scope == "system")
        for scope in _SCOPES
    ]


def _ask(scope: Scope) -> str:
    paths = [file.path.replace("~", "$HOME", 1) for file in FILES[scope]]
    return _ASK.format(
        runtime=_RUNTIME,
        as_root=AS_ROOT,
        flag=f"--{scope}",
        unit=UNIT,
        properties=_PROPERTIES,
        files=" ".join(f'"{path}"' for path in paths),
    )


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    """`reset-failed`, or a unit that has crashed too often would not be started at all."""
    scope = service.scope
    systemctl = f"systemctl --{scope}"
    return Supervisor(
        prepare=_RUNTIME,
        verify=_VERIFY.format(scope=scope, unit=UNIT, file=_DROP_IN),
        reload=f"{systemctl} daemon-reload",
        enable=f"{systemctl} enable {UNIT}",
        disable=f"{systemctl} disable {UNIT}",
        restart=f"{systemctl} reset-failed {UNIT} 2>/dev/null; {systemctl} restart {UNIT}",
        stop=f"{systemctl} stop {UNIT}",
        log=_LAST_WORDS.format(scope=scope, unit=UNIT),
    )


def read(records: Mapping[str, Record]) -> Iterator[Service]:
    """What was answered, for each scope in which systemd knows the unit or could."""
    for scope in _SCOPES:
        record = records.get(f"systemd {scope}")
        if record is not None and record.status == 0:
            yield _service(scope, record)


def _service(scope: Scope, record: Record) -> Service:
    values: dict[str, list[str]] = {}
    for line in record.text.splitlines():
        key, _, value = line.partition("=")
        values.setdefault(key, []).append(value)

    def first(key: str) -> str:
        return values.get(key, [""])[0]

    files = dict(files_in(record))
    pid = int(first("MainPID")) if first("MainPID").isdecimal() else 0
    return Service(
        scope=scope,
        mode=scope,
        loaded=first("LoadState") == "loaded",
        preference=scope == "system",
        blocked="the service of Ollama is masked" if first("LoadState") == "masked" else "",
        fix="unmask it, if that was not on purpose",
        enabled=first("UnitFileState") in ("enabled", "enabled-runtime", "linked", "static"),
        active=first("ActiveState") == "active",
        starting=first("ActiveState") == "activating",
        pid=pid or None,
        run=first("InvocationID"),
        restarts=int(first("NRestarts")) if first("NRestarts").isdecimal() else 0,
        reload_pending=first("NeedDaemonReload") == "yes",
        definition=first("FragmentPath"),
        sources=tuple(_sources(values, files)),
        running=_running(record) if pid else Unknown("it does not run"),
        effective=_effective(record) if pid else Unknown("it does not run"),
        files=files,
    )


def _sources(values: Mapping[str, list[str]], files: Mapping[str, File]) -> Iterator[Source]:
    """`Environment=` of the unit and its drop-ins in their order, then the environment files."""
    paths = [*values.get("FragmentPath", []), *" ".join(values.get("DropInPaths", [])).split()]
    for path in paths:
        settings: dict[str, str] = {}
        for line in _lines(files.get(path)):
            if found := re.match(r"Environment\s*=(.*)", line):
                settings.update(_assignments(found[1]))
        yield Source(path, settings)
        taken = dict.fromkeys(_taken_away(_lines(files.get(path))), "")
        if taken:
            yield Source(path, taken, wins=True)
    late = _named_late(paths, files)
    for entry in values.get("EnvironmentFiles", []):
        path = re.sub(r" \(ignore_errors=.*", "", entry)
        assigned = (_assignments(line) for line in _lines(files.get(path)))
        settings = {name: value for each in assigned for name, value in each.items()}
        ours = path.endswith("/fleetctl/ollama.env")
        wins = not ours and any(path.endswith(name) for name in late)
        yield Source(path, settings, ours=ours, wins=wins)


def _named_late(paths: list[str], files: Mapping[str, File]) -> list[str]:
    """Environment files that are named after ours, and so win over it."""
    late = [path for path in paths if PurePosixPath(path).name > _DROP_IN]
    lines = [line for path in late for line in _lines(files.get(path))]
    found = [re.match(r"EnvironmentFile\s*=\s*-?(?:%h)?(/.*)", line) for line in lines]
    return [match[1].strip() for match in found if match]


def _taken_away(lines: list[str]) -> Iterator[str]:
    """Variables that the service does not get, whoever sets them."""
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


def _running(record: Record) -> Mapping[str, str] | Unknown:
    said = record.section("environ")
    if not said:
        return Unknown("the environment of its process is for root only")
    return dict(entry.split("=", 1) for entry in said.split("\0") if "=" in entry)


def _effective(record: Record) -> Mapping[str, str] | Unknown:
    said = server_log.effective(record.section("log"))
    return said or Unknown("its log may not be read, or is gone")
