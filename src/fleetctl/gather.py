"""Connect, run the joined script, ask the API: everything that is known about a node, as Facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fleetctl import backends, way_back
from fleetctl.links import (
    Connector,
    Link,
    LocalLink,
    answers,
    read_answers,
    root_shell,
    send_questions,
    transport,
)
from fleetctl.model import address
from fleetctl.model.facts import UNREADABLE, Api, Facts, File, Host, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import NodePlan
from fleetctl.ollama import Client, NoAnswer
from fleetctl.playbook import Entry
from fleetctl.shell import Part, Record, quote, survey
from fleetctl.steps import preflight

_MAX_SECONDS = 10
"""Loopback connects and answers immediately or not at all, so the time-out is short."""


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

    connector: Connector
    task: Task
    timeout: float
    password: str | None = None

    def connect(self, node: Node) -> Link:
        assert node.ssh is not None
        return LocalLink() if node.ssh.is_local else self.connector.connect(node.name, node.ssh)

    def plan(self, link: Link, node: Node) -> NodePlan:
        return self.task.planner(node, self.facts(link, node))

    def facts(self, link: Link, node: Node) -> Facts:
        """The API is asked while the script runs. What needs root and a password comes last."""
        shell = link.shell()
        nonce = send_questions(shell, self.task.parts)
        api = ask(link, node.listens, self.timeout)
        records = read_answers(shell, nonce, self.timeout)
        host = survey.host(records)
        services = backends.read(records)
        hidden = any(service.hides_from_us for service in services) or _unreadable(records)
        if hidden and host.uid != 0 and self.password is not None:
            root = root_shell(link, self.password, self.timeout)
            records |= answers(root, self._parts_for_root(host), self.timeout)
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


def client(link: Link, listens: str, timeout: float) -> Client:
    """Ollama's API, requested from the node itself."""
    url = f"http://{address.join_host_port(*address.place_of(listens))}"
    return Client(url, timeout=timeout, transport=transport(link, min(timeout, _MAX_SECONDS)))


def ask(link: Link, listens: str, timeout: float) -> Api | Unknown:
    try:
        with client(link, listens, min(timeout, _MAX_SECONDS)) as api:
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
