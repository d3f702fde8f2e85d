"""One kind of step a file: what it asks, how it reads the answers, what it would change."""

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from fleetctl.model.facts import Answers, Facts, Service
from fleetctl.model.fleet import Fleet, Node, Target
from fleetctl.model.plan import Change, Finding
from fleetctl.render import Templates
from fleetctl.shell import Question

__all__ = ["Place", "Step", "StepContext", "kinds"]

Place = Literal["nodes", "controller"]


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step plans with."""

    step: str
    """The name of the step in its playbook."""
    fleet: Fleet
    target: Target
    facts: Facts
    service: Service | None
    """The service of the target, if there is one to manage."""
    templates: Templates

    @property
    def node(self) -> Node:
        assert self.target.node is not None, "a step of nodes is not planned on the controller"
        return self.target.node


class Step(BaseModel):
    """A kind of step; its fields are its arguments in a playbook."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ClassVar[str]
    """Its key in a playbook."""
    places: ClassVar[frozenset[Place]] = frozenset({"nodes"})
    """Where it may be used."""

    def refusal(self, place: Place) -> str | None:
        """Why its arguments cannot be used at that place, if so."""
        return None

    def questions(self, target: Target) -> list[Question]:
        """What to ask the target. The keys need to differ only within the step."""
        return []

    def read(self, answers: Answers) -> Any:
        """The answers to its own questions as the step's facts, which `plan` gets as `seen`."""
        return None

    def plan(self, context: StepContext, seen: Any) -> Iterator[Change | Finding]:
        """The differences; nothing is yielded where there are none."""
        raise NotImplementedError


def kinds() -> Mapping[str, type[Step]]:
    """Every kind of step: those in this folder, and what else has been imported."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return {step.kind: step for step in Step.__subclasses__()}
