"""What happens during a run, one value a happening; the console, the log and the JSON listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleetctl.model.plan import Result
from fleetctl.model.report import Outcome, Report


@dataclass(frozen=True, slots=True)
class Looked:
    """A node was looked at and planned for, or could not be."""

    result: Result


@dataclass(frozen=True, slots=True)
class Planned:
    report: Report


@dataclass(frozen=True, slots=True)
class Doing:
    """What a node is busy with from now on."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Did:
    """A change was made; until the node is done it may still be taken back."""

    node: str
    title: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something to know about a node."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is that takes long, such as a download."""

    target: str
    what: str
    done: int
    total: int
    """0 while it is not known."""
    unit: str
    """`B` for bytes; otherwise the plural of what is counted."""


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Stopping:
    """The user wants it to end; what has begun is brought to an end first."""

    hint: str


Event = Looked | Planned | Doing | Did | Noted | Progress | Ended | Stopping
Listener = Callable[[Event], None]
