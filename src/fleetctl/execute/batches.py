"""The changes of a plan as transactions, one for each level of privilege. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleetctl import backends
from fleetctl.model import address
from fleetctl.model.facts import Host, Service
from fleetctl.model.fleet import Node
from fleetctl.model.plan import (
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

    @property
    def bare(self) -> Batch:
        """The same without a change: it only holds the lock."""
        nothing = replace(self.transaction, files=(), commands=(), operations=())
        return replace(self, changes=(), transaction=nothing)


def batches(node: Node, plan: NodePlan, owner: str) -> Iterator[Batch]:
    """The level of the service comes last, and always: its lock is held until the node is done.

    Where a run was cut off, that is undone first and alone, as the plan was made before.
    """
    found = backends.service_of(node, plan.facts)
    service = found if isinstance(found, Service) else None
    rival = backends.rival(service, plan.facts) if service else None
    host = plan.facts.host
    changes = tuple(change for _, change in plan.changes if isinstance(change, Scripted))
    undone = tuple(change for change in changes if isinstance(change, Recover))
    as_root = service is not None and service.scope == "system"
    for level in (not as_root, as_root):
        chosen = tuple(change for change in undone or changes if change.as_root == level)
        if not chosen and level != as_root:
            continue
        own_state = host.expanded(survey.USER_STATE)
        transaction = Transaction(
            state=survey.STATE[host.system] if level else own_state,
            owner=owner,
            about="; ".join(change.title for change in chosen),
            home=host.home,
            user=host.user,
            port=address.place_of(node.listens)[1],
            active=service is not None and service.active,
            files=tuple(_files(chosen, host)),
            commands=tuple(each.commands for each in chosen if isinstance(each, RunCommand)),
            operations=tuple(_operations(chosen)),
            supervisor=backends.supervisor(service, rival) if service else Supervisor(),
            rival=rival.mode if rival else "",
        )
        yield Batch(level, chosen, transaction)


def _files(changes: tuple[Scripted, ...], host: Host) -> Iterator[FileChange]:
    for change in changes:
        if isinstance(change, WriteFile):
            path = host.expanded(change.path)
            yield FileChange(path, change.before, change.after, change.mode)


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
