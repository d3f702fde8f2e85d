"""The changes of a plan as transactions, one for each level of privilege. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleetctl import backends
from fleetctl.gather import listens, place_of
from fleetctl.model.facts import Host, Service
from fleetctl.model.fleet import Node
from fleetctl.model.plan import (
    Finding,
    Forget,
    NodePlan,
    Recover,
    Restart,
    RunCommand,
    Scripted,
    Supervise,
    WriteFile,
)
from fleetctl.shell import survey
from fleetctl.shell.transaction import FileChange, Operation, Supervisor, Transaction


@dataclass(frozen=True, slots=True)
class Batch:
    as_root: bool
    changes: tuple[Scripted, ...]
    """By the numbers that the transaction speaks of."""
    transaction: Transaction

    @property
    def restarts(self) -> bool:
        return any(isinstance(change, Restart) for change in self.changes)


def batches(node: Node, plan: NodePlan, owner: str) -> Iterator[Batch]:
    """The level of the service comes last, and always: its lock is held until the node is done.

    Where a run was cut off, that is undone first and alone, as the plan was made before.
    """
    service = backends.service_of(node, plan.facts)
    changes = tuple(change for _, change in plan.changes if isinstance(change, Scripted))
    undone = tuple(change for change in changes if isinstance(change, Recover))
    as_root = isinstance(service, Service) and service.scope == "system"
    for level in (not as_root, as_root):
        chosen = tuple(change for change in undone or changes if change.as_root == level)
        if chosen or level == as_root:
            about = "; ".join(change.title for change in chosen)
            yield Batch(
                level,
                chosen,
                Transaction(
                    state=state_folder(plan.facts.host, level),
                    owner=owner,
                    about=about,
                    home=plan.facts.host.home,
                    user=plan.facts.host.user,
                    port=place_of(listens(node))[1],
                    active=isinstance(service, Service) and service.active,
                    files=tuple(_files(chosen, plan.facts.host)),
                    commands=tuple(_commands(chosen)),
                    operations=tuple(_operations(chosen)),
                    supervisor=(
                        Supervisor()
                        if isinstance(service, Finding)
                        else backends.supervisor(service, backends.rival(service, plan.facts))
                    ),
                ),
            )


def state_folder(host: Host, as_root: bool) -> str:
    own = survey.USER_STATE.replace("~", host.home, 1)
    return survey.STATE[host.system] if as_root else own


def _files(changes: tuple[Scripted, ...], host: Host) -> Iterator[FileChange]:
    for change in changes:
        if isinstance(change, WriteFile):
            path = change.path.replace("~", host.home, 1)
            yield FileChange(path, change.before, change.after, change.mode)


def _commands(changes: tuple[Scripted, ...]) -> Iterator[str]:
    return (change.commands for change in changes if isinstance(change, RunCommand))


def _operations(changes: tuple[Scripted, ...]) -> Iterator[Operation]:
    """In the order of the plan; a definition is checked and read when all of it is in place."""
    files, commands = 0, 0
    defining = [change for change in changes if isinstance(change, WriteFile) and change.defines]
    for at, change in enumerate(changes):
        match change:
            case WriteFile():
                yield Operation(f"{'discard' if change.after is None else 'replace'} {files}", at)
                files += 1
                if defining and change is defining[-1]:
                    yield from (Operation("verify"), Operation("reload"))
            case RunCommand():
                yield Operation(f"run {commands}", at)
                commands += 1
            case Supervise():
                yield Operation(change.verb, at)
            case Restart():
                yield Operation("restart", at)
            case Forget():
                yield Operation("forget", at)
