"""`--limit 'mac*,!mini,@group,tag:heavy'`: which nodes a command is for."""

from fnmatch import fnmatchcase

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory.problems import did_you_mean
from fleetctl.model.fleet import CONTROLLER, Fleet, Node


def select(fleet: Fleet, limit: str | None) -> tuple[Node, ...]:
    """The nodes that match; raises FleetError where a pattern, or the whole limit, matches none.

    Patterns are separated by commas. `!` excludes; exclusions alone are taken from all nodes.
    """
    if limit is None:
        return tuple(fleet.nodes.values())
    patterns = [pattern.strip() for pattern in limit.split(",") if pattern.strip()]
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if not patterns:
        raise FleetError("--limit is empty", hint=_HELP, exit_code=Exit.USAGE)
    chosen = set() if included else set(fleet.nodes)
    chosen = chosen.union(*(_matching(fleet, pattern) for pattern in included))
    chosen = chosen.difference(*(_matching(fleet, pattern) for pattern in excluded))
    nodes = tuple(node for name, node in fleet.nodes.items() if name in chosen)
    if not nodes and CONTROLLER not in chosen:
        raise FleetError(f"--limit {limit!r} selects no node", hint=_HELP, exit_code=Exit.USAGE)
    return nodes


_HELP = "a pattern is a name, a glob (mac*), @group or tag:name; ! in front excludes"


def _matching(fleet: Fleet, pattern: str) -> set[str]:
    """The names that one pattern matches; no match is an error, as it is nearly always a typo."""
    if pattern == CONTROLLER or pattern in fleet.nodes:
        return {pattern}
    nodes = fleet.nodes.values()
    if pattern.startswith("@"):
        kind, glob, names = "group", pattern[1:], {node.name: node.groups for node in nodes}
    elif pattern.startswith("tag:"):
        kind, glob, names = "tag", pattern[4:], {node.name: node.tags for node in nodes}
    else:
        kind, glob, names = "node", pattern, {node.name: (node.name,) for node in nodes}
    found = {
        node for node, values in names.items() if any(fnmatchcase(value, glob) for value in values)
    }
    if not found:
        known = set(fleet.groups) if kind == "group" else set().union(*names.values())
        if any(fnmatchcase(name, glob) for name in known):
            what, hint = "contains no nodes", "a node joins a group with its key `groups`"
        else:
            what, hint = f"matches no {kind}", did_you_mean(glob, known)
        raise FleetError(f"--limit: {pattern!r} {what}", hint=hint, exit_code=Exit.USAGE)
    return found
