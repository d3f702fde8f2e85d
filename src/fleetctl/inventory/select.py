"""`--limit 'mac*,!mini,@group,tag:heavy'`: which nodes, and whether the controller."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory.problems import did_you_mean
from fleetctl.model.fleet import CONTROLLER, Fleet, Node


@dataclass(frozen=True, slots=True)
class Selection:
    nodes: tuple[Node, ...]
    controller: bool


def select(fleet: Fleet, limit: str | None) -> Selection:
    """Patterns are joined by commas; `!` takes away, and alone takes away from all."""
    if limit is None:
        return Selection(tuple(fleet.nodes.values()), controller=True)
    patterns = [pattern.strip() for pattern in limit.split(",") if pattern.strip()]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if not patterns:
        raise FleetError("--limit is empty", hint=_HELP, exit_code=Exit.USAGE)
    chosen = set().union(*(_matching(fleet, pattern) for pattern in wanted)) if wanted else None
    dropped = set().union(*(_matching(fleet, pattern) for pattern in unwanted))
    chosen = (set(fleet.nodes) if chosen is None else chosen) - dropped
    nodes = tuple(node for name, node in fleet.nodes.items() if name in chosen)
    if not nodes and CONTROLLER not in chosen:
        raise FleetError(f"--limit {limit!r} leaves no node", hint=_HELP, exit_code=Exit.USAGE)
    return Selection(nodes, controller=CONTROLLER in chosen)


_HELP = "a pattern is a name, a glob (mac*), @group or tag:name; ! before it takes away"


def _matching(fleet: Fleet, pattern: str) -> set[str]:
    """The names that one pattern means; none is an error, since it is nearly always a typo."""
    names: Callable[[Node], tuple[str, ...]]
    if pattern.startswith("@"):
        what, word, known = "group", pattern[1:], set(fleet.groups)
        names = lambda node: node.groups  # noqa: E731
    elif pattern.startswith("tag:"):
        what, word = "tag", pattern[4:]
        known = {tag for node in fleet.nodes.values() for tag in node.tags}
        names = lambda node: node.tags  # noqa: E731
    elif pattern == CONTROLLER or pattern in fleet.nodes:
        return {pattern}
    else:
        what, word, known = "node", pattern, set(fleet.nodes)
        names = lambda node: (node.name,)  # noqa: E731
    rule = re.compile(translate(word))
    found = {
        node.name for node in fleet.nodes.values() if any(rule.match(name) for name in names(node))
    }
    if not found:
        raise FleetError(
            f"--limit: {pattern!r} matches no {what}",
            hint=did_you_mean(word, known),
            exit_code=Exit.USAGE,
        )
    return found
