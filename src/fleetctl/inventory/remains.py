"""What is left of a file without what is wrong in it, so that the rest can be compared too."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import takewhile

from pydantic import ValidationError

from fleetctl.inventory import names
from fleetctl.inventory.document import Value
from fleetctl.inventory.problems import Path, Problem
from fleetctl.inventory.schema import InventorySection

_ROUNDS = 3
"""A node that is left out takes models with it, and those agents."""


def remains(inventory: Value, problems: Iterable[Problem]) -> InventorySection | None:
    """None where too little is left, or nobody could say which machine is which."""
    rest = copy.deepcopy(inventory)
    for _ in range(_ROUNDS):
        for problem in problems:
            _leave_out(rest, _place(problem.where))
        problems = list(names.problems(rest))
    try:
        return None if problems else InventorySection.model_validate(rest)
    except ValidationError:
        return None


def _place(where: Path) -> Path:
    """How much has to go: a value alone, or what means another thing without it."""
    match where:
        case ("models" | "agents", _, *_):
            return where[:2]
        case ("nodes", _, "ssh" | "endpoint" | "provider" | "cloud_provider", *_):
            return where[:2]
        case ("defaults", "ssh", *_) | ("groups", _, "ssh", *_):
            return ("nodes",)
    return tuple(takewhile(lambda step: isinstance(step, str), where))


def _leave_out(rest: Value, place: Path) -> None:
    here = rest
    for step in place[:-1]:
        here = here.get(str(step)) if isinstance(here, dict) else None
    if isinstance(here, dict) and place:
        here.pop(str(place[-1]), None)
