"""Homebrew's own service of the formula `ollama`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetctl.codecs import homebrew_env
from fleetctl.model.facts import Answers, Mode, Service, ServiceFile, ServiceSpec
from fleetctl.services import launchd
from fleetctl.shell import Question, library, quote
from fleetctl.shell.transaction import Supervisor

MODES: tuple[Mode, ...] = ("brew",)

_FORMULA = "ollama"
_LABELS = (f"sh.brew.{_FORMULA}", f"homebrew.mxcl.{_FORMULA}")
_FLOOR = (6, 0, 15)
"""The first Homebrew that reads an environment file for a service."""
_SHELL = f"{launchd.SHELL}\n{library(__file__, 'homebrew.sh')}"


def describe(service: ServiceSpec) -> Iterator[ServiceSpec]:
    if service.name == _FORMULA:
        values = ServiceFile(
            f"~/.homebrew/services/{_FORMULA}.env", "launchd/homebrew.brew", homebrew_env.decode
        )
        yield replace(service, mode="brew", scope="user", files=(values,), log="", ids=_LABELS)


def questions(specs: Sequence[ServiceSpec]) -> list[Question]:
    return [
        Question(
            "brew",
            f"ask_brew {_FORMULA} {quote(chr(10).join(spec.log_marks))}",
            os="macos",
            library=_SHELL,
            for_root=True,
        )
        for spec in specs
    ]


def read(specs: Sequence[ServiceSpec], answers: Answers) -> Iterator[Service]:
    mac, answer = launchd.Mac.of(answers), answers.get("brew")
    if mac is None or answer is None or not answer.text.strip():
        return
    version, *_, prefix = answer.text.strip().split("\n")
    old = tuple(map(int, re.findall(r"\d+", version)[:3])) < _FLOOR
    floor = ".".join(map(str, _FLOOR))
    for plain in specs:
        job = mac.job(("gui/", "user/"), *plain.ids)
        spec = replace(plain, log=f"{prefix}/var/log/{_FORMULA}.log")
        yield replace(
            mac.service(spec, job, logs=answer),
            loaded=bool(job.text),
            blocked=f"{version} cannot set variables for a service" if old and job.text else "",
            hint=f"get Homebrew {floor}; or stop its service of Ollama, with ollama.service: agent",
            enabled=not set(_LABELS) & mac.disabled,
            definition=f"{prefix}/opt/{_FORMULA}",
        )


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    return Supervisor(
        library=_SHELL,
        restart=_services("restart", service),
        stop=_services("stop", service),
        log=f"tail -n 40 {launchd.in_home(service.spec.log)}",
        manual=(f"{_prefix(service)}/bin/brew services restart {_FORMULA}",),
    )


def displacing(rival: Service) -> Supervisor:
    """How the service is stopped for good when another one takes over, and started again."""
    return Supervisor(
        library=_SHELL, displace=_services("stop", rival), give_back=_services("start", rival)
    )


def _services(verb: str, service: Service) -> str:
    return f"brew_service {quote(_prefix(service))} {verb} {_FORMULA}"


def _prefix(service: Service) -> str:
    return service.definition.removesuffix(f"/opt/{_FORMULA}")
