"""launchd: how Ollama is described, asked about and restarted on a Mac, in four ways.

`daemon` and `agent` are jobs of our own, `app` is Ollama.app, `brew` is Homebrew's service. What
is believed of launchd here, and why, stands in docs/macos.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fleetctl.backends.mac_answers import Answers, Job
from fleetctl.backends.service_file import ServiceFile
from fleetctl.codecs import homebrew_env, sh
from fleetctl.model import server_log
from fleetctl.model.facts import Mode, Service, Source, Unknown
from fleetctl.shell import Part, Record
from fleetctl.shell.transaction import Supervisor

_LABEL = "dev.fleetctl.ollama"
_APP_LABEL = "dev.fleetctl.ollama-env"
_BREW_LABELS = ("sh.brew.ollama", "homebrew.mxcl.ollama")
_BREW_FLOOR = (6, 0, 15)
"""The first Homebrew that reads an environment file for a service."""
_LOG = "~/.ollama/logs/fleetctl-server.log"
_APP_LOG = "~/.ollama/logs/server.log"
_SHELL = Path(__file__).with_name("launchd.sh")


def _environment_in(text: str) -> Mapping[str, str]:
    """The variables of a job of ours; launchd ignores what is not text."""
    from xml.parsers.expat import ExpatError

    from fleetctl.codecs import plist  # plistlib takes as long to load as half the rooms

    try:
        found = plist.decode(text)
    except (ValueError, ExpatError):
        return {}
    given = found.get("EnvironmentVariables", {}) if isinstance(found, dict) else {}
    return {key: value for key, value in given.items() if isinstance(value, str) and key != "HOME"}


FILES: Mapping[Mode, tuple[ServiceFile, ...]] = {
    "daemon": (
        ServiceFile(
            "launchd/daemon.plist",
            f"/Library/LaunchDaemons/{_LABEL}.plist",
            _environment_in,
            defines=True,
        ),
    ),
    "agent": (
        ServiceFile(
            "launchd/agent.plist",
            f"~/Library/LaunchAgents/{_LABEL}.plist",
            _environment_in,
            defines=True,
        ),
    ),
    "app": (
        ServiceFile("launchd/app-env.sh", "~/.config/fleetctl/ollama-app.sh", sh.decode),
        ServiceFile(
            "launchd/app-env.plist", f"~/Library/LaunchAgents/{_APP_LABEL}.plist", defines=True
        ),
    ),
    "brew": (
        ServiceFile(
            "launchd/homebrew.brew", "~/.homebrew/services/ollama.env", homebrew_env.decode
        ),
    ),
}


def parts() -> list[Part]:
    files = [_home(file.path) for each in FILES.values() for file in each]
    labels = " ".join((_LABEL, _APP_LABEL, *_BREW_LABELS))
    logs = f"{_home(_LOG)} {_home(_APP_LOG)}"
    call = f'look_at_mac "{labels}" "{" ".join(files)}" "{logs}"'
    return [Part("launchd", f"{_SHELL.read_text()}\n{call}", system="Darwin", for_root=True)]


def _home(path: str, home: str = "$HOME") -> str:
    return path.replace("~", home, 1)


def read(records: Mapping[str, Record]) -> Iterator[Service]:
    record = records.get("launchd")
    if record is None or not record.sections:
        return
    answers = Answers(record)
    yield _own(answers, "daemon", ("system",))
    yield _own(answers, "agent", ("gui/", "user/"))
    if answers.text("app"):
        yield _app(answers)
    if answers.text("brew"):
        yield _brew(answers)


def _own(answers: Answers, mode: Mode, domains: tuple[str, ...]) -> Service:
    """A job of ours, or one that could be made."""
    job = answers.job(domains, _LABEL)
    path = FILES[mode][0].path
    return replace(
        _service(answers, mode, job, _LOG),
        loaded=bool(job.text or answers.content(path)),
        creatable=True,
        preference=(1 if answers.root_is_free else -1) if mode == "daemon" else 0,
        enabled=_LABEL not in answers.disabled,
        definition=path,
    )


def _app(answers: Answers) -> Service:
    app = answers.text("app").split("\n")[0]
    nobody = "Ollama.app runs only while its user is logged in at the screen, and nobody is"
    found = _service(answers, "app", Job(""), _APP_LOG, f"{app}/Contents/Resources/ollama")
    return replace(
        found,
        loaded=True,
        blocked="" if answers.gui else nobody,
        fix="log in there, or set ollama.service: daemon",
        enabled=_APP_LABEL not in answers.disabled,
        definition=app,
        sources=(*found.sources, *_switches(answers)),
    )


def _switches(answers: Answers) -> Iterator[Source]:
    """Settings of the app that win over any environment."""
    expose, browser, models, context, *_ = [*answers.text("settings").strip().split("|"), *[""] * 4]
    said = {
        "Expose Ollama to the network": ("OLLAMA_HOST", "0.0.0.0" if expose == "1" else ""),  # noqa: S104
        "Allow websites to use Ollama": ("OLLAMA_ORIGINS", "*" if browser == "1" else ""),
        "Model location": ("OLLAMA_MODELS", models),
        "Context length": ("OLLAMA_CONTEXT_LENGTH", context if context != "0" else ""),
    }
    for switch, (variable, value) in said.items():
        if value:
            where = f"the switch {switch!r} in the settings of Ollama.app"
            yield Source(where, {variable: value}, wins=True)


def _brew(answers: Answers) -> Service:
    version, *_, prefix = answers.text("brew").strip().split("\n")
    old = tuple(map(int, re.findall(r"\d+", version)[:3])) < _BREW_FLOOR
    job = answers.job(("gui/", "user/"), *_BREW_LABELS)
    floor = ".".join(map(str, _BREW_FLOOR))
    return replace(
        _service(answers, "brew", job, f"{prefix}/var/log/ollama.log"),
        loaded=bool(job.text),
        blocked=f"{version} cannot give variables to a service" if old and job.text else "",
        fix=f"get Homebrew {floor}; or stop its service of Ollama, and say ollama.service: agent",
        enabled=not set(_BREW_LABELS) & answers.disabled,
        definition=f"{prefix}/opt/ollama",
    )


def _service(answers: Answers, mode: Mode, job: Job, log: str, program: str = "") -> Service:
    """What is the same in all four; the server is that of the job, or whoever runs the program."""
    found = answers.serving(job.pid, program) if job.pid or program else None
    file = FILES[mode][0]
    ours = file.decode(answers.content(file.path)) if file.decode else {}
    hidden = "the environment of an app cannot be read" if program else "it does not run"
    return Service(
        scope="system" if mode == "daemon" else "user",
        mode=mode,
        loaded=False,
        active=found is not None,
        pid=found[0] if found else None,
        run=f"{found[0]} {found[1]}" if found else "",
        restarts=job.crashes,
        sources=(Source(file.path, ours, ours=True),) if ours else (),
        running=job.environment if job.pid else Unknown(hidden),
        effective=answers.effective(log, found[1] if found else None),
        log=log,
        computes_on=tuple(server_log.computes_on(answers.log(log))),
        files=answers.files,
    )


def _brew_services(verb: str, service: Service) -> str:
    brew = f"{service.definition.removesuffix('/opt/ollama')}/bin/brew"
    return f"HOMEBREW_NO_AUTO_UPDATE=1 HOMEBREW_NO_ENV_HINTS=1 {brew} services {verb} ollama"


_APP_AT_LOGIN = '"$domain/com.ollama.ollama"'


def _displaced(rival: Service | None) -> tuple[str, str]:
    """How another one is made to stop for good, and how it is brought back."""
    if rival is None:
        return "true", "true"
    if rival.mode == "brew":
        return _brew_services("stop", rival), _brew_services("start", rival)
    back = f"launchctl enable {_APP_AT_LOGIN}; open -j -a Ollama --args hidden --fast-startup"
    return f"find_domain; launchctl disable {_APP_AT_LOGIN}; quit_app", f"find_domain; {back}"


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    log = f'tail -n 40 "{_home(service.log, "$home")}"'
    if service.mode == "brew":
        restart, stop = _brew_services("restart", service), _brew_services("stop", service)
        return Supervisor(restart=restart, stop=stop, log=log)
    path = f'"{_home(FILES[service.mode][-1].path, "$home")}"'
    is_app = service.mode == "app"
    label = _APP_LABEL if is_app else _LABEL
    displace, give_back = _displaced(rival)
    return Supervisor(
        prepare=_SHELL.read_text(),
        verify=f"[ ! -e {path} ] || plutil -lint {path}",
        enable=f'find_domain; launchctl enable "$domain/{label}"',
        disable=f'find_domain; launchctl disable "$domain/{label}"',
        restart=f"restart_{'app' if is_app else 'job'} {label} {path}",
        stop="quit_app" if is_app else f"stop_job {label}",
        displace=displace,
        give_back=give_back,
        log=log,
    )
