"""What shall happen: changes, one difference each, and what stands in their way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fleetctl.errors import Exit
from fleetctl.model.facts import Scope


@dataclass(frozen=True, slots=True)
class WriteFile:
    """`before` is None where there is no file yet."""

    path: str
    before: str | None
    after: str
    mode: int = 0o644
    details: tuple[str, ...] = ()
    """What the difference means, where that is more than lines of text."""

    @property
    def title(self) -> str:
        return f"{'write' if self.before is None else 'change'} {self.path}"


@dataclass(frozen=True, slots=True)
class Enable:
    scope: Scope

    @property
    def title(self) -> str:
        return "start Ollama at boot"


@dataclass(frozen=True, slots=True)
class Reload:
    """The supervisor has not read its files again since they were changed."""

    scope: Scope

    @property
    def title(self) -> str:
        return "reload the definition of the service, which somebody changed"


@dataclass(frozen=True, slots=True)
class Restart:
    scope: Scope
    why: tuple[str, ...]
    running: bool = True

    @property
    def title(self) -> str:
        verb = "restart" if self.running else "start"
        more = f" (and {len(self.why) - 1} more)" if len(self.why) > 1 else ""
        return f"{verb} Ollama, because {self.why[0]}{more}"


@dataclass(frozen=True, slots=True)
class PullModel:
    model: str

    @property
    def title(self) -> str:
        return f"pull {self.model}"


@dataclass(frozen=True, slots=True)
class RunCommand:
    name: str
    commands: str
    sudo: bool

    @property
    def title(self) -> str:
        return f"run: {self.name}"


Change = WriteFile | Enable | Reload | Restart | PullModel | RunCommand


class Level(IntEnum):
    NOTE = 0
    UNKNOWN = 1
    """Something could not be seen, and so not be checked."""
    WARNING = 2
    OBSTACLE = 3
    """The node cannot be brought to what is desired until somebody sees to it."""
    EXPOSURE = 4
    """Refused for safety."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class NodePlan:
    node: str
    changes: tuple[tuple[str, Change], ...] = ()
    """Each with the kind of its step."""
    findings: tuple[Finding, ...] = ()

    @property
    def state(self) -> str:
        return "as desired" if self.exit_code == Exit.OK else self.exit_code.name.lower()

    @property
    def exit_code(self) -> Exit:
        levels = {finding.level for finding in self.findings}
        if Level.EXPOSURE in levels:
            return Exit.REFUSED
        return Exit.DIFFERS if self.changes or Level.OBSTACLE in levels else Exit.OK


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
