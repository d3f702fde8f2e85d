"""What every machine is asked: what it is, which servers run there, whether a run is at work."""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from fleetctl.model import address
from fleetctl.model.facts import Answer, Answers, Host, Scope, Server, Unknown
from fleetctl.model.fleet import Target
from fleetctl.shell.protocol import HOST, LOCK, SYSTEMS, Os, Question, in_shell

SCOPES: tuple[Scope, ...] = get_args(Scope)

_PROGRAM = "ollama"
_FOLDERS = (
    "~/.local/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/opt/homebrew/bin",
    "~/homebrew/bin",
    "/snap/bin",
    "/Applications/Ollama.app/Contents/Resources",
    "~/Applications/Ollama.app/Contents/Resources",
)

_SYSTEM_STATE: dict[Os, str] = {"linux": "/var/lib/fleetctl", "macos": "/var/db/fleetctl"}
_USER_STATE = "~/.local/state/fleetctl"


def state_folder(target: Target, scope: Scope, os: Os) -> str:
    """Where a target keeps the lock, journal and backups of its transactions."""
    if target.folder:
        return f"{target.folder}/.fleetctl/state"
    return _USER_STATE if scope == "user" else _SYSTEM_STATE[os]


def state_questions(
    target: Target, key: str, call: str, scope: Scope, library: str
) -> list[Question]:
    """`call` with a scope and its state folder as last arguments, on either system."""
    return [
        Question(
            f"{key} {scope}",
            f"{call} {scope} {in_shell(state_folder(target, scope, os))}",
            os=os,
            library=library,
            for_root=scope == "system",
        )
        for os in SYSTEMS
    ]


def questions(target: Target) -> list[Question]:
    common = [Question("host", "ask_host", library=HOST)]
    for scope in SCOPES if target.node else SCOPES[1:]:
        common += state_questions(target, "state", "ask_state", scope, LOCK)
    if target.node is None:
        return common
    folders = " ".join(in_shell(folder) for folder in _FOLDERS)
    return [
        *common,
        Question("programs", f"ask_programs {_PROGRAM} {folders}", library=HOST),
        Question("addresses", "ask_addresses", library=HOST),
        Question("servers", f"ask_servers {_PROGRAM}", library=HOST),
    ]


def host(answers: Answers) -> Host:
    answer = answers["host"]
    first, who, home, *_ = [*answer.text.split("\n"), "", "", ""]
    system, name, release, machine, *_ = [*first.split(" "), "", "", "", ""]
    user = re.match(r"uid=(\d+)(?:\(([^)]*)\))?", who)
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', answer.section("release"), re.MULTILINE)
    traits = set(answer.section("traits").split())
    state = "".join(said.text for key, said in answers.items() if key.startswith("state "))
    busy = re.search(r"^busy (.*)$", state, re.MULTILINE)
    return Host(
        system=system,
        release=release,
        machine=machine,
        distribution=pretty[1] if pretty else "",
        name=name,
        user=user[2] or user[1] if user else "",
        uid=int(user[1]) if user else -1,
        home=home,
        traits=frozenset(traits | ({"wsl"} if "microsoft" in release.lower() else set())),
        programs=tuple(answers["programs"].text.splitlines()) if "programs" in answers else (),
        servers=tuple(_servers(answers["servers"])) if "servers" in answers else (),
        addresses=_addresses(answers.get("addresses")),
        unfinished=frozenset(scope for scope in SCOPES if f"unfinished {scope}" in state),
        locked_by=busy[1] if busy else "",
    )


def _addresses(answer: Answer | None) -> tuple[str, ...] | Unknown:
    if answer is None:
        return Unknown("it was not asked for")
    if answer.status != 0:
        return Unknown("the machine has neither `ip` nor `ifconfig`")
    found = re.findall(r"\binet6? (?:addr:)?([0-9a-fA-F.:]+)", answer.text)
    return tuple(dict.fromkeys(filter(address.is_address, found)))


def _servers(answer: Answer) -> Iterator[Server]:
    for line in answer.text.splitlines():
        pid, uid, unit, command = (line.split("\t") + [""] * 4)[:4]
        if pid.isdecimal() and uid.isdecimal():
            yield Server(int(pid), int(uid), unit, command.strip())


_TCP_STATES = {"LISTEN": "0A", "ESTABLISHED": "01"}


def ask_ports(state: Literal["LISTEN", "ESTABLISHED"]) -> str:
    """Shell of the library `HOST` that prints the local port of each connection in that state."""
    return f"ask_ports {_TCP_STATES[state]} {state}"


def ports(text: str) -> list[int]:
    """The ports in what `ask_ports` printed; anything else in it is ignored."""
    words = re.findall(r"^(?:0x([0-9A-F]{1,4})|(\d{1,5}))$", text, re.MULTILINE | re.ASCII)
    return [int(hexadecimal, 16) if hexadecimal else int(plain) for hexadecimal, plain in words]
