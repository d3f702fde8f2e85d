"""Checks: what is found on a target that is not a difference which fleetctl would correct.

Each is a pure function with a code, a level and one subject; `findings` runs all of them. The
blocking ones that need the answers of `preflight` are silent where it did not ask.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from fleetctl.model.facts import Facts, Service
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Finding, Level
from fleetctl.steps.preflight import PreflightFacts

__all__ = ["Audited", "Check", "check", "checks", "findings"]


@dataclass(frozen=True, slots=True)
class Audited:
    """What the checks look at."""

    node: Node
    facts: Facts
    service: Service | None
    preflight: PreflightFacts | None
    has_sudo_password: bool


Found = Iterator[tuple[str, str | None]]
"""Text and hint of each finding."""


@dataclass(frozen=True, slots=True)
class Check:
    code: str
    level: Level
    about: str
    run: Callable[[Audited], Found]


_CHECKS: dict[str, Check] = {}


def check(code: str, level: Level, about: str) -> Callable[[Callable[[Audited], Found]], None]:
    """Registers a function as the check of that code."""

    def register(function: Callable[[Audited], Found]) -> None:
        assert code not in _CHECKS, f"two checks have the code {code}"
        _CHECKS[code] = Check(code, level, about, function)

    return register


def checks() -> dict[str, Check]:
    for module in ("exposure", "node", "preflight"):
        import_module(f"{__name__}.{module}")
    return dict(sorted(_CHECKS.items()))


def findings(audited: Audited) -> Iterator[Finding]:
    for each in checks().values():
        for text, hint in each.run(audited):
            yield Finding(each.code, each.level, text, hint)
