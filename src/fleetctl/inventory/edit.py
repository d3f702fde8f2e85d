"""Add a node to the text of an inventory in block style; every other byte stays as it was.

The place is found by indentation. The result is loaded again and must hold the old values plus the
new node; otherwise (flow style, JSON, an alias) the error contains the lines to add by hand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetctl.codecs import yaml_flow
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import document
from fleetctl.inventory.loading import parse
from fleetctl.inventory.problems import InvalidFile
from fleetctl.model.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Edited:
    data: bytes
    added: str
    """The new lines, as they are in the file."""
    fleet: Fleet


def with_node(data: bytes, file: Path, name: str, values: Mapping[str, object]) -> Edited:
    """The inventory with one more node. `file` is only named in errors, not read or written."""
    read = document.read(data, str(file))
    if isinstance(read.value, str | int | list) or "nodes" in (read.value or ()):
        parse(data, file)  # raises where the file is invalid; only `nodes` may be missing
    before: dict[str, Any] = read.value if isinstance(read.value, dict) else {}
    nodes = before.get("nodes") or {}
    if name in nodes:
        what = f"there is a node {name!r} already in {file}"
        hint = f"fleetctl provision {name}; or give the new one another name with --as NAME"
        raise FleetError(what, hint=hint, exit_code=Exit.USAGE)
    wanted = {**before, "nodes": {**nodes, name: values}}
    text, added = _insert(data.decode(), name, values)
    edited = _holds(text, wanted, problems=len(read.problems))
    try:
        fleet, _ = parse((text if edited else yaml_flow.encode(wanted)).encode(), file)
    except InvalidFile as error:
        for problem in error.problems:
            if problem.where[:2] == ("nodes", name):  # without a line number: it is not written yet
                what = f"{problem.path}: {problem.what}"
                raise FleetError(what, hint=problem.hint, exit_code=Exit.USAGE) from None
        raise
    if not edited:
        snippet = "\n  ".join(["nodes:", *_node(name, values, "  ")])
        what = f"fleetctl adds nodes only to files in block style; nothing was written to {file}"
        hint = f"add it by hand, then: fleetctl provision {name}\n{snippet}"
        raise FleetError(what, hint=hint, exit_code=Exit.USAGE)
    return Edited(text.encode(), added, fleet)


def _holds(text: str, wanted: object, problems: int) -> bool:
    """Whether a text has these values. As text, since 1 == True in Python, and the order counts."""
    try:
        read = document.read(text.encode(), "")
    except InvalidFile:
        return False
    return repr(read.value) == repr(wanted) and len(read.problems) == problems


def _insert(text: str, name: str, values: Mapping[str, object]) -> tuple[str, str]:
    """The new text, correct only if the old one is in block style, and the lines added."""
    lines = text.split("\n")
    content = {at: line for at, line in enumerate(lines) if re.match(r" *[^ #]", line)}
    indents = {at: len(line) - len(line.lstrip(" ")) for at, line in content.items()}
    step = next(filter(None, indents.values()), 2)
    start = next((at for at in content if re.match(r"nodes:\s*([#&]|$)", lines[at])), None)
    if start is None:
        end = lines.index("...") if "..." in lines else len(lines)
        section, column = list(content), 0
    else:
        end = next((at for at in content if at > start and not indents[at]), len(lines))
        section = [at for at in content if start < at < end]
        column = indents[section[0]] if section else step
        step = next((indents[at] - column for at in section if indents[at] > column), column)
    siblings = [at for at in section if indents[at] == column]
    on_one_line = start is not None and siblings and re.search(r":\s+{", lines[siblings[-1]])
    new = _node(name, values, "" if on_one_line else " " * step)
    new = ["nodes:", *(" " * step + line for line in new)] if start is None else new
    new = [" " * column + line for line in new]
    if len(siblings) > 1 and "" in lines[siblings[-2] : siblings[-1]]:
        new = ["", *new]
    while end and not re.match(rf" *[^ #]| {{{column},}}#", lines[end - 1]):
        end -= 1  # blank lines, and comments that belong to what follows
    return "\n".join([*lines[:end], *new, *(lines[end:] or [""])]), "\n".join(new).strip("\n")


def _node(name: str, values: Mapping[str, object], step: str) -> list[str]:
    """The lines of a node: in block style, or one line where there is no `step`."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]+", name) and yaml_flow.decode(name) == name
    node = name if plain else yaml_flow.encode(name)
    quoted = (yaml_flow.encode({key: value})[1:-1] for key, value in values.items())
    pairs = [re.sub(r'"(\w+)":', r"\1:", pair) for pair in quoted]
    if not step:
        return [f"{node}: {{{', '.join(pairs)}}}"]
    return [f"{node}:", *(step + pair for pair in pairs)]
