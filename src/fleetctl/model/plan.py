"""A plan: what would change on a target, and what was found there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar, Literal

from fleetctl.errors import Exit
from fleetctl.model.facts import Facts, Scope, Service


class Stage(StrEnum):
    """When a change is made; stages run in this order, and only the transaction is rolled back."""

    API_FIRST = "api-first"
    UPLOAD = "upload"
    """Large files, sent beside the old ones; the transaction then switches to them."""
    TRANSACTION = "transaction"
    API_AFTER = "api-after"


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file before and after; None where it does not exist."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0o644
    details: tuple[str, ...] = ()
    """What the change means, where that says more than the diff."""
    scope: Scope = "user"
    defines: bool = False
    """Whether it belongs to the definition of the service, which must then be reloaded."""

    stage: ClassVar[Stage] = Stage.TRANSACTION

    @property
    def title(self) -> str:
        verb = "write" if self.before is None else "remove" if self.after is None else "change"
        return f"{verb} {self.path}"


Action = Literal["enable", "disable", "reload", "displace", "halt", "hand_back"]

_TITLES: Mapping[Action, str] = {
    "enable": "start {} at boot",
    "disable": "do not start {} at boot, as before",
    "displace": "stop what runs {} now, because of `takeover`",
    "halt": "stop {}, which this service did not run before",
    "hand_back": "start what ran {} before `takeover`",
    "reload": "reload the definition of the service, which was changed on disk",
}


@dataclass(frozen=True, slots=True)
class ServiceAction:
    """What the service manager is told."""

    action: Action
    scope: Scope
    service: str

    stage: ClassVar[Stage] = Stage.TRANSACTION

    @property
    def title(self) -> str:
        return _TITLES[self.action].format(self.service)


@dataclass(frozen=True, slots=True)
class Restart:
    scope: Scope
    service: str
    why: tuple[str, ...]
    running: bool = True

    stage: ClassVar[Stage] = Stage.TRANSACTION

    @property
    def short_title(self) -> str:
        return f"{'restart' if self.running else 'start'} {self.service}"

    @property
    def reason(self) -> str:
        more = f" (and {len(self.why) - 1} more)" if len(self.why) > 1 else ""
        return f"{self.why[0]}{more}"

    @property
    def title(self) -> str:
        return f"{self.short_title}, because {self.reason}"


@dataclass(frozen=True, slots=True)
class RunCommand:
    name: str
    commands: str
    scope: Scope

    stage: ClassVar[Stage] = Stage.TRANSACTION

    @property
    def title(self) -> str:
        return f"run: {self.name}"


@dataclass(frozen=True, slots=True)
class Recover:
    """An earlier transaction was interrupted, and so was its rollback."""

    scope: Scope

    title: ClassVar[str] = "undo an interrupted run"
    stage: ClassVar[Stage] = Stage.TRANSACTION


@dataclass(frozen=True, slots=True)
class Forget:
    """fleetctl's own state on the node is removed, after everything else."""

    scope: Scope

    title: ClassVar[str] = "remove fleetctl's own state from the node"
    stage: ClassVar[Stage] = Stage.TRANSACTION


@dataclass(frozen=True, slots=True)
class PullModel:
    model: str

    stage: ClassVar[Stage] = Stage.API_AFTER

    @property
    def title(self) -> str:
        return f"pull {self.model}"


@dataclass(frozen=True, slots=True)
class DeleteModel:
    model: str
    stage: Stage = Stage.API_AFTER
    """Before a removal, since Ollama may be stopped or moved by it; else after the transaction."""

    @property
    def title(self) -> str:
        return f"delete {self.model}"


TransactionChange = WriteFile | ServiceAction | Restart | RunCommand | Recover | Forget
ModelChange = PullModel | DeleteModel
Change = TransactionChange | ModelChange


class Level(IntEnum):
    NOTE = 0
    UNKNOWN = 1
    """Something could not be read, and so not be checked."""
    WARNING = 2
    FAULT = 3
    """Not as desired, and no change of fleetctl's would correct it."""
    OBSTACLE = 4
    """The target cannot be changed until the user resolves it."""
    EXPOSURE = 5
    """Refused for safety."""


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    """Stable: scripts may rely on it. `audit/` and `steps/` list them."""
    level: Level
    text: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    target: str
    facts: Facts = field(repr=False, compare=False)
    """What it was made from."""
    service: Service | None = field(default=None, repr=False, compare=False)
    """What the changes are about, if there is one."""
    rival: Service | None = field(default=None, repr=False, compare=False)
    """Another service that runs the same server, or did before `takeover`."""
    changes: tuple[tuple[str, Change], ...] = ()
    """Each with the kind of its step."""
    findings: tuple[Finding, ...] = ()

    def at(self, stage: Stage) -> list[Change]:
        return [change for _, change in self.changes if change.stage == stage]

    def worst(self, level: Level) -> list[Finding]:
        """The findings of this level or a worse one."""
        return [finding for finding in self.findings if finding.level >= level]

    @property
    def converged(self) -> bool:
        return not self.changes and not self.worst(Level.FAULT)

    @property
    def state(self) -> str:
        return {Exit.OK: "ok", Exit.DIFFERS: "drift"}.get(self.exit_code, "refused")

    @property
    def exit_code(self) -> Exit:
        if self.worst(Level.EXPOSURE):
            return Exit.REFUSED
        return Exit.OK if self.converged else Exit.DIFFERS


@dataclass(frozen=True, slots=True)
class Failed:
    """A target for which there is no plan, and why."""

    target: str
    message: str
    hint: str | None
    exit_code: Exit

    @property
    def state(self) -> str:
        named = (Exit.UNREACHABLE, Exit.REFUSED, Exit.LOCKED)
        return self.exit_code.name.lower() if self.exit_code in named else "failed"


Result = Plan | Failed
