"""Ollama.app: the variables that it gets at login, and its own settings, which win over them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetctl.codecs import sh
from fleetctl.model.facts import Answers, Mode, Service, ServiceFile, ServiceSpec, Source
from fleetctl.services import launchd
from fleetctl.shell import Question, library
from fleetctl.shell.transaction import Supervisor

MODES: tuple[Mode, ...] = ("app",)

_NAME = "ollama"
_LABEL = f"{launchd.PREFIX}.ollama-env"
_SHELL = f"{launchd.SHELL}\n{library(__file__, 'ollama_app.sh')}"


def describe(service: ServiceSpec) -> Iterator[ServiceSpec]:
    if service.name == _NAME:
        plist = f"~/Library/LaunchAgents/{_LABEL}.plist"
        yield replace(
            service,
            mode="app",
            scope="user",
            files=(
                ServiceFile("~/.config/fleetctl/ollama-app.sh", "launchd/app-env.sh", sh.decode),
                ServiceFile(plist, "launchd/app-env.plist", defines=True),
            ),
            log="~/.ollama/logs/server.log",
            ids=(_LABEL,),
        )


def questions(specs: Sequence[ServiceSpec]) -> list[Question]:
    return [Question("app", "ask_app", os="macos", library=_SHELL, for_root=True)] if specs else []


def read(specs: Sequence[ServiceSpec], answers: Answers) -> Iterator[Service]:
    mac, answer = launchd.Mac.of(answers), answers.get("app")
    if mac is None or answer is None or not answer.text.strip():
        return
    app = answer.text.strip().split("\n")[0]
    for spec in specs:
        program = f"{app}/Contents/Resources/ollama"
        found = mac.service(spec, launchd.Job(""), program=program)
        yield replace(
            found,
            loaded=True,
            blocked="" if mac.gui else _NO_SESSION,
            hint="log in there, or set ollama.service: daemon",
            enabled=_LABEL not in mac.disabled,
            definition=app,
            sources=(*found.sources, *_switches(answer.section("settings"))),
        )


_NO_SESSION = "Ollama.app needs a user logged in at the screen, and there is none"


def _switches(settings: str) -> Iterator[Source]:
    """Settings of the app that take precedence over any environment."""
    expose, browser, models, context, *_ = [*settings.strip().split("|"), *[""] * 4]
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


def supervisor(service: Service, rival: Service | None) -> Supervisor:
    path = launchd.in_home(service.spec.files[-1].path)
    return replace(
        launchd.supervisor(service, rival),
        library=_SHELL,
        restart=f"restart_app {_LABEL} {path}",
        stop="quit_app",
        manual=("pkill -TERM -x Ollama", "open -a Ollama"),
    )


def displacing(rival: Service) -> Supervisor:
    """How the app is stopped for good when another service takes over, and started again."""
    return Supervisor(library=_SHELL, displace="displace_app", give_back="give_back_app")
