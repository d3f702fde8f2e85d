"""launchd: how a service is described, asked about and controlled as a job of ours.

It may be a daemon of the system or an agent of the user. Other ways to run a service on a Mac add
specs of their own, and read what launchd says of their jobs from the same answer. docs/macos.md has
the sources of what is assumed about launchd.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from fleetctl.model.facts import (
    LARGEST_FILE,
    Answer,
    Answers,
    Mode,
    Scope,
    Service,
    ServiceFile,
    ServiceSpec,
    Source,
    Unknown,
)
from fleetctl.shell import HOST, Question, files_in, in_shell, library, quote
from fleetctl.shell.transaction import Supervisor

MODES: tuple[Mode, ...] = ("daemon", "agent")
PREFIX = "dev.fleetctl"
SHELL = library(__file__, "launchd.sh")

_PLACES = {"daemon": "/Library/LaunchDaemons", "agent": "~/Library/LaunchAgents"}
_DOMAINS = {"daemon": ("system",), "agent": ("gui/", "user/")}


def environment_in(text: str) -> Mapping[str, str]:
    """The variables of a job of ours; launchd ignores values that are not strings."""
    from xml.parsers.expat import ExpatError

    from fleetctl.codecs import plist  # plistlib is slow to import

    try:
        found = plist.decode(text)
    except (ValueError, ExpatError):
        return {}
    given = found.get("EnvironmentVariables", {}) if isinstance(found, dict) else {}
    return {key: value for key, value in given.items() if isinstance(value, str) and key != "HOME"}


def describe(service: ServiceSpec) -> Iterator[ServiceSpec]:
    label = f"{PREFIX}.{service.name}"
    ways: tuple[tuple[Mode, Scope], ...] = (("daemon", "system"), ("agent", "user"))
    for mode, scope in ways:
        path = f"{_PLACES[mode]}/{label}.plist"
        plist = ServiceFile(path, f"launchd/{mode}.plist", environment_in, defines=True)
        yield replace(
            service,
            mode=mode,
            scope=scope,
            files=(plist,),
            ids=(label,),
        )


def questions(specs: Sequence[ServiceSpec]) -> list[Question]:
    """All specs of a Mac together, since most of what is asked is the same for all."""
    if not specs:
        return []
    name = specs[0].name
    labels = dict.fromkeys(label for spec in specs for label in spec.ids)
    files = dict.fromkeys(in_shell(file.path) for spec in specs for file in spec.files)
    logs = dict.fromkeys(in_shell(spec.log) for spec in specs if spec.log)
    commands = (
        f"ask_launchd {' '.join(labels)}",
        f"read_files user {LARGEST_FILE + 1} {' '.join(files)}",
        f"ask_processes {quote(f'[{name[0]}]{name[1:]}')}",
        f"ask_logs {quote(chr(10).join(specs[0].log_marks))} {' '.join(logs)}",
        "section sudo",
        "ask_sudo",
    )
    library = f"{HOST}\n{SHELL}"
    return [Question("launchd", "\n".join(commands), os="macos", library=library, for_root=True)]


def read(specs: Sequence[ServiceSpec], answers: Answers) -> Iterator[Service]:
    if mac := Mac.of(answers):
        yield from (_own(mac, spec) for spec in specs)


def _own(mac: "Mac", spec: ServiceSpec) -> Service:
    """A job of ours, or one that could be created."""
    job = mac.job(_DOMAINS[spec.mode], *spec.ids)
    prefers_daemon = 1 if mac.root_is_free else -1
    return replace(
        mac.service(spec, job),
        loaded=bool(job.text or mac.content(spec.files[0].path)),
        creatable=True,
        preference=prefers_daemon if spec.mode == "daemon" else 0,
        enabled=not set(spec.ids) & mac.disabled,
        definition=spec.files[0].path,
    )


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    (label,), path = service.spec.ids, in_home(service.spec.files[-1].path)
    log = in_home(service.spec.log)
    return Supervisor(
        library=SHELL,
        verify=f"verify_plist {path}",
        enable=f"enable_job {label}",
        disable=f"disable_job {label}",
        restart=f"restart_job {label} {path} {log}",
        stop=f"stop_job {label}",
        log=f"tail -n 40 {log}",
        manual=(f"launchctl kickstart -k gui/$(id -u)/{label}",),
    )


def in_home(path: str) -> str:
    """A path as a word of a transaction, where `home` is that of the user, also for root."""
    return f'"$home"{quote(path[1:])}' if path.startswith("~") else quote(path)


class Job:
    """What launchd prints of a job; empty for one that it does not know."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _number(self, name: str) -> int | None:
        """A value at the job's own level: nested blocks repeat some of the names."""
        found = re.search(rf"^\t{name} = (\d+)$", self.text, re.MULTILINE | re.ASCII)
        return int(found[1]) if found else None

    @property
    def pid(self) -> int | None:
        return self._number("pid")

    @property
    def crashes(self) -> int:
        return self._number("successive crashes") or 0

    @property
    def environment(self) -> Mapping[str, str]:
        block = re.search(r"^\tenvironment = \{\n(.*?)^\t\}", self.text, re.MULTILINE | re.DOTALL)
        return dict(re.findall(r"^\t\t(\w+) => (.*)$", block[1] if block else "", re.MULTILINE))


class Mac:
    """What a Mac has answered about its jobs."""

    def __init__(self, answer: Answer) -> None:
        self._names = tuple(answer.sections)
        self._text = answer.section
        self.gui = "gui" in answer.text.split()
        self.root_is_free = self._text("sudo").strip() in ("root", "free")
        self.files = files_in(answer)
        self.disabled = set(re.findall(r'"([^"]+)" => (?:disabled|true)', self._text("disabled")))

    @classmethod
    def of(cls, answers: Answers) -> "Mac | None":
        answer = answers.get("launchd")
        return cls(answer) if answer is not None and answer.sections else None

    def job(self, domains: tuple[str, ...], *labels: str) -> Job:
        """The first of these jobs that launchd knows."""
        for name in self._names:
            kind, _, target = name.partition(" ")
            domain, _, label = target.rpartition("/")
            if kind == "job" and label in labels and domain.startswith(domains):
                return Job(self._text(name))
        return Job("")

    def content(self, path: str) -> str:
        """Of a file, by a path in which `~` stands for the home of the user."""
        ending = path.removeprefix("~")
        found = next((file for at, file in self.files.items() if at.endswith(ending)), None)
        return found.content if found and isinstance(found.content, str) else ""

    def service(
        self, spec: ServiceSpec, job: Job, *, program: str = "", logs: Answer | None = None
    ) -> Service:
        """What all ways have in common; the server is the job's, or the one that runs `program`."""
        found = self._serving(job.pid, program) if job.pid or program else None
        file = spec.files[0]
        ours = file.decode(self.content(file.path)) if file.decode else {}
        hidden = "macOS does not show the environment of an app" if program else "it does not run"
        return Service(
            spec=spec,
            loaded=False,
            active=found is not None,
            pid=found[0] if found else None,
            run=f"{found[0]} {found[1]}" if found else "",
            started=found[1] if found else None,
            restarts=job.crashes,
            sources=(Source(file.path, ours, ours=True),) if ours else (),
            environment=job.environment if job.pid else Unknown(hidden),
            log=self._log(spec.log, logs) if found else Unknown("it does not run"),
            files=self.files,
        )

    def _serving(self, pid: int | None, program: str) -> tuple[int, datetime] | None:
        """A server, by its number or by what it runs: its pid, and when it was started."""
        for line in self._text("processes").splitlines():
            words = line.split(None, 7)
            if len(words) < 8 or not words[0].isdecimal():
                continue
            runs = bool(program) and words[7] == f"{program} serve"
            if int(words[0]) == pid or runs:
                zone = self._text("zone").strip() or "+0000"
                try:
                    text = f"{' '.join(words[3:7])} {zone}"
                    return int(words[0]), datetime.strptime(text, "%b %d %H:%M:%S %Y %z")
                except ValueError:
                    return None
        return None

    def _log(self, path: str, elsewhere: Answer | None) -> str | Unknown:
        names, text = self._names, self._text
        if elsewhere is not None:
            names, text = tuple(elsewhere.sections), elsewhere.section
        ending = path.removeprefix("~")
        logs = (name for name in names if name.startswith("log ") and name.endswith(ending))
        return text(next(logs, "")).strip() or Unknown("its log does not show them")
