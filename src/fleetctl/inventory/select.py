"""`--limit 'mac*,!mini,@group,tag:heavy'`: which nodes."""

from __future__ import annotations

from fnmatch import fnmatchcase

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory.problems import did_you_mean
from fleetctl.model.fleet import CONTROLLER, Fleet, Node


def select(fleet: Fleet, limit: str | None) -> tuple[Node, ...]:
    """Patterns are joined by commas; `!` takes away, and alone takes away from all."""
    if limit is None:
        return tuple(fleet.nodes.values())
    patterns = [pattern.strip() for pattern in limit.split(",") if pattern.strip()]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if not patterns:
        raise FleetError("--limit is empty", hint=_HELP, exit_code=Exit.USAGE)
    chosen = set() if wanted else set(fleet.nodes)
    chosen = chosen.union(*(_matching(fleet, pattern) for pattern in wanted))
    chosen = chosen.difference(*(_matching(fleet, pattern) for pattern in unwanted))
    nodes = tuple(node for name, node in fleet.nodes.items() if name in chosen)
    if not nodes and CONTROLLER not in chosen:
        raise FleetError(f"--limit {limit!r} leaves no node", hint=_HELP, exit_code=Exit.USAGE)
    return nodes


_HELP = "a pattern is a name, a glob (mac*), @group or tag:name; ! before it takes away"


def _matching(fleet: Fleet, pattern: str) -> set[str]:
    """The names that one pattern means; none is an error, since it is nearly always a typo."""
    if pattern == CONTROLLER or pattern in fleet.nodes:
        return {pattern}
    nodes = fleet.nodes.values()
    if pattern.startswith("@"):
        what, word, names = "group", pattern[1:], {node.name: node.groups for node in nodes}
    elif pattern.startswith("tag:"):
        what, word, names = "tag", pattern[4:], {node.name: node.tags for node in nodes}
    else:
        what, word, names = "node", pattern, {node.name: (node.name,) for node in nodes}
    found = {node for node, its in names.items() if any(fnmatchcase(name, word) for name in its)}
    if not found:
        known = set(fleet.groups) if what == "group" else set().union(*names.values())
        if any(fnmatchcase(name, word) for name in known):
            said, hint = "has nobody in it", "a node joins one with its key `groups`"
        else:
            said, hint = f"matches no {what}", did_you_mean(word, known)
        raise FleetError(f"--limit: {pattern!r} {said}", hint=hint, exit_code=Exit.USAGE)
    return found
