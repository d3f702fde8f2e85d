"""The changes of a plan as transactions, one for each level of privilege. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl import backends
from fleetctl.model import address
from fleetctl.model.fleet import Node
from fleetctl.model.plan import NodePlan, Recover, Scripted
from fleetctl.shell import survey
from fleetctl.shell.transaction import Supervisor, Transaction


def transactions(node: Node, plan: NodePlan, owner: str) -> Iterator[Transaction]:
    """The level of the service comes last, and always: its lock is held until the node is done.

    Where a run was cut off, that is undone first and alone, as the plan was made before.
    """
    service = plan.service
    rival = backends.rival(service, plan.facts) if service else None
    host = plan.facts.host
    changes = tuple(change for _, change in plan.changes if isinstance(change, Scripted))
    undone = tuple(change for change in changes if isinstance(change, Recover))
    as_root = service is not None and service.as_root
    for level in (not as_root, as_root):
        chosen = tuple(change for change in undone or changes if change.as_root == level)
        if not chosen and level != as_root:
            continue
        yield Transaction(
            state=survey.STATE[host.system] if level else host.expanded(survey.USER_STATE),
            owner=owner,
            about="; ".join(change.title for change in chosen),
            changes=chosen,
            as_root=level,
            home=host.home,
            user=host.user,
            port=address.place_of(node.listens)[1],
            active=service is not None and (service.active or service.starting),
            enabled=service is not None and service.enabled,
            supervisor=backends.supervisor(service, rival) if service else Supervisor(),
            rival=rival.mode if rival else "",
        )
