"""Who uses Ollama right now: connections that are open, and models that are loaded."""

from __future__ import annotations

from fleetctl.gather import client
from fleetctl.links import Link, answers
from fleetctl.ollama import NoAnswer
from fleetctl.shell import Part, ports


def clients(link: Link, port: int, timeout: float) -> int:
    """How many connections to that port are open, whoever's they are."""
    question = Part("connections", ports.ask("ESTABLISHED"))
    said = answers(link.shell(), [question], timeout)[question.key]
    return ports.read(said.text).count(port)


def loaded(link: Link, listens: str, timeout: float) -> list[str]:
    try:
        with client(link, listens, timeout) as api:
            return api.loaded()
    except NoAnswer:
        return []
