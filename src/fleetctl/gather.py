"""Connect, run the joined script, ask the API: everything that is known about a node, as Facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from fleetctl import backends, way_back
from fleetctl.errors import FleetError
from fleetctl.links import Link, exchange
from fleetctl.links.dial import Dialler
from fleetctl.links.elevate import root_shell
from fleetctl.links.local import LocalLink
from fleetctl.model import address
from fleetctl.model.facts import UNREADABLE, Api, Facts, File, Host, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import NodePlan
from fleetctl.ollama.api import Client, NoAnswer
from fleetctl.playbook import Entry
from fleetctl.shell import Part, Record, quote, survey
from fleetctl.steps import preflight

_MOST_SECONDS_TO_CONNECT = 10
"""Within a machine, a connection is there at once, or never."""


def questions(playbook: Iterable[Entry]) -> list[Part]:
    """All that a node is asked, in one script."""
    return [
        *survey.PARTS,
        *backends.parts(),
        *(part for entry in playbook for part in entry.parts()),
    ]


def _no_plan(node: Node, facts: Facts) -> NodePlan:
    return NodePlan(node.name, facts)


@dataclass(frozen=True, slots=True)
class Task:
    """What to ask of each node, and how the answers become a plan."""

    parts: list[Part]
    planner: Callable[[Node, Facts], NodePlan] = _no_plan


@dataclass(frozen=True, slots=True)
class Observer:
    """Looks at nodes, and plans for them: what is the same for all nodes of a run."""

    dialler: Dialler
    task: Task
    timeout: float
    password: str | None = None

    def connect(self, node: Node) -> Link:
        assert node.ssh is not None
        return LocalLink() if node.ssh.is_local else self.dialler.dial(node.name, node.ssh)

    def plan(self, link: Link, node: Node) -> NodePlan:
        return self.task.planner(node, self.facts(link, node))

    def facts(self, link: Link, node: Node) -> Facts:
        """The API is asked while the script runs. What needs root and a password comes last."""
        shell = link.shell()
        nonce = exchange.send(shell, self.task.parts)
        api = ask(link, node.listens, self.timeout)
        records = exchange.records(shell, nonce, self.timeout)
        host = survey.host(records)
        services = backends.read(records)
        hidden = any(service.hides_from_us for service in services) or _unreadable(records)
        if hidden and host.uid != 0 and self.password is not None:
            root = root_shell(link, self.password, self.timeout)
            records |= exchange.answers(root, self._parts_for_root(host), self.timeout)
            services = backends.read(records)
        if isinstance(api, Unknown):
            running = (service.listens for service in services if service.active)
            elsewhere = next((each for each in running if each and each != node.listens), None)
            api = ask(link, elsewhere, self.timeout) if elsewhere else api
        return Facts(
            host=host,
            services=services,
            servers=tuple(survey.servers(records["servers"])) if "servers" in records else (),
            api=api,
            files=dict(_files(records)),
            unfinished=survey.unfinished(records),
            at_work=survey.at_work(records),
            preflight=preflight.read(records),
            kept=way_back.read(records),
            guards=dict(_guards(records)),
        )

    def _parts_for_root(self, host: Host) -> list[Part]:
        home = f"HOME={quote(host.home)}\n"
        parts = (part for part in self.task.parts if part.for_root)
        return [replace(part, commands=home + part.commands) for part in parts]


def _unreadable(records: Mapping[str, Record]) -> bool:
    sections = (each for record in records.values() for each in record.sections.values())
    return any(section == UNREADABLE for section in sections)


def client(link: Link, listens: str, timeout: float) -> closing[Client]:
    """Ollama's API, through the link, from the node itself."""
    host, port = address.place_of(listens)
    try:
        stream = link.tcp(host, port, min(timeout, _MOST_SECONDS_TO_CONNECT))
        return closing(Client(stream, host, port))
    except (OSError, EOFError, FleetError):
        raise NoAnswer(f"nothing answers at {host} port {port}") from None


def ask(link: Link, listens: str, timeout: float) -> Api | Unknown:
    try:
        with client(link, listens, timeout) as api:
            return api.facts()
    except NoAnswer as error:
        return Unknown(str(error))


def _files(records: Mapping[str, Record]) -> Iterator[tuple[str, File]]:
    for key, record in records.items():
        if key.startswith("file "):
            content = record.sections.get("content", b"")
            yield key.removeprefix("file "), File.listed(content, record.section("mode"))


def _guards(records: Mapping[str, Record]) -> Iterator[tuple[str, bool | Unknown]]:
    for key, record in records.items():
        if key.startswith("guard "):
            found = record.status < 126
            why = Unknown(record.text.strip() or f"its guard ended with {record.status}")
            yield key.removeprefix("guard "), record.status == 0 if found else why
