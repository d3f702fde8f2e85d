"""One kind of step a file: what it needs to know (probe), and what it would change (plan)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from fleetctl.model.facts import Facts, Service
from fleetctl.model.fleet import Fleet, Node
from fleetctl.model.plan import Change, Finding
from fleetctl.render import Templates
from fleetctl.shell import Part


@dataclass(frozen=True, slots=True)
class Subject:
    """The node that a step plans for."""

    fleet: Fleet
    node: Node
    facts: Facts
    service: Service | None
    templates: Templates
    elevates: bool = False
    """Whether there is a password for sudo."""


class Step(BaseModel):
    """A kind of step; its fields are what a playbook may say of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def probe(self, name: str) -> list[Part]:
        """Parts for the script that gathers facts; `name` is the step's own."""
        return []

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        """What differs. Nothing is yielded where nothing does."""
        raise NotImplementedError
