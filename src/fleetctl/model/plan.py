"""What shall happen: changes, one difference each, and what stands in their way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Literal

from fleetctl.errors import Exit
from fleetctl.model.facts import Facts, Service


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file as it is and as it shall be; None where there is none, or shall be none."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0o644
    details: tuple[str, ...] = ()
    """What the difference means, where that is more than lines of text."""
    as_root: bool = False
    defines: bool = False
    """Whether it is part of the definition of the service, which must be read again then."""

    @property
    def title(self) -> str:
        verb = "write" if self.before is None else "remove" if self.after is None else "change"
        return f"{verb} {self.path}"


Verb = Literal["enable", "disable", "reload", "displace", "halt", "hand_back"]

_TITLES: Mapping[Verb, str] = {
    "enable": "start Ollama at boot",
    "disable": "do not start Ollama at boot, as before",
    "displace": "stop what runs Ollama now, as the inventory says `takeover`",
    "halt": "stop Ollama, which this service did not run before",
    "hand_back": "start what ran Ollama before `takeover`",
    "reload": "reload the definition of the service, which somebody changed",
}


@dataclass(frozen=True, slots=True)
class Supervise:
    """What shall be said to the supervisor of the service."""

    verb: Verb
    as_root: bool

    @property
    def title(self) -> str:
        return _TITLES[self.verb]


@dataclass(frozen=True, slots=True)
class Restart:
    as_root: bool
    why: tuple[str, ...]
    running: bool = True

    @property
    def deed(self) -> str:
        return f"{'restart' if self.running else 'start'} Ollama"

    @property
    def reason(self) -> str:
        more = f" (and {len(self.why) - 1} more)" if len(self.why) > 1 else ""
        return f"{self.why[0]}{more}"

    @property
    def title(self) -> str:
        return f"{self.deed}, because {self.reason}"


@dataclass(frozen=True, slots=True)
class RunCommand:
    name: str
    commands: str
    as_root: bool

    @property
    def title(self) -> str:
        return f"run: {self.name}"


@dataclass(frozen=True, slots=True)
class Recover:
    """An earlier run was cut off, and so was the way back."""

    title: ClassVar[str] = "undo what a run that was cut off has left"
    as_root: bool


@dataclass(frozen=True, slots=True)
class Forget:
    """What fleetctl keeps on the node goes, once the rest is done."""

    title: ClassVar[str] = "remove what fleetctl keeps on the node for itself"
    as_root: bool


@dataclass(frozen=True, slots=True)
class PullModel:
    model: str

    @property
    def title(self) -> str:
        return f"pull {self.model}"


@dataclass(frozen=True, slots=True)
class DeleteModel:
    model: str

    @property
    def title(self) -> str:
        return f"delete {self.model}"


Scripted = WriteFile | Supervise | Restart | RunCommand | Recover | Forget
"""Changes that a script makes on the node."""
ModelChange = PullModel | DeleteModel
"""Those that are asked of Ollama's API."""
Change = Scripted | ModelChange


class Level(IntEnum):
    NOTE = 0
    UNKNOWN = 1
    """Something could not be seen, and so not be checked."""
    WARNING = 2
    FAULT = 3
    """Not as desired, and no file would mend it."""
    OBSTACLE = 4
    """The node cannot be brought to what is desired until somebody sees to it."""
    EXPOSURE = 5
    """Refused for safety."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    hint: str | None = None
    """What to do about it."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    node: str
    facts: Facts = field(repr=False, compare=False)
    """What it was made from."""
    service: Service | None = field(default=None, repr=False, compare=False)
    """What the changes are about, if there is one."""
    changes: tuple[tuple[str, Change], ...] = ()
    """Each with the kind of its step."""
    findings: tuple[Finding, ...] = ()

    def worst(self, level: Level) -> list[Finding]:
        """What was found of this level or a worse one."""
        return [finding for finding in self.findings if finding.level >= level]

    @property
    def state(self) -> str:
        words = {Exit.OK: "ok", Exit.DIFFERS: "drift"}
        return words.get(self.exit_code, self.exit_code.name.lower())

    @property
    def exit_code(self) -> Exit:
        if self.worst(Level.EXPOSURE):
            return Exit.REFUSED
        return Exit.DIFFERS if self.changes or self.worst(Level.FAULT) else Exit.OK


@dataclass(frozen=True, slots=True)
class Lost:
    """A node that could not be looked at, and why."""

    node: str
    message: str
    hint: str | None
    exit_code: Exit

    @property
    def state(self) -> str:
        return self.exit_code.name.lower()


Result = NodePlan | Lost
