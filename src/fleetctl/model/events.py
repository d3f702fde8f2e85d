"""What happens during a run, one value an event; the console, the log and the JSON listen."""

from collections.abc import Callable
from dataclasses import dataclass

from fleetctl.model.plan import Result
from fleetctl.model.report import Outcome, Report


@dataclass(frozen=True, slots=True)
class Gathered:
    """A target was examined and planned, or could not be."""

    result: Result


@dataclass(frozen=True, slots=True)
class Planned:
    report: Report


@dataclass(frozen=True, slots=True)
class Doing:
    """What is being done on a target from now on."""

    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Did:
    """A change was made; until the target is done it may still be rolled back."""

    target: str
    title: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something to know about a target."""

    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a transfer is done; the unit of bytes is `B`."""

    target: str
    what: str
    done: int
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Stopping:
    """The user asked to stop; what has begun is finished first."""

    hint: str


Event = Gathered | Planned | Doing | Did | Noted | Progress | Ended | Stopping
Listener = Callable[[Event], None]
