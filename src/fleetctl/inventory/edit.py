"""A node more in the text of an inventory: every other byte stays as its owner wrote it.

Where the text goes is worked out from the marks of PyYAML's nodes. That it went to the right place
is not taken on trust: what comes out is loaded again, and is the old file and the new node, or it
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import yaml

from fleetctl.codecs import yaml_flow
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import document
from fleetctl.inventory.load import parse
from fleetctl.inventory.problems import InvalidFile
from fleetctl.model.fleet import Fleet

Write = Callable[[str], str]
"""How the file writes its keys: plain, or in quotes as JSON does."""

_ALIAS = re.compile(r"\s*:\s*\*[^\s,\[\]{}]+")
_REST_OF_LINE = re.compile(r"(\s*,)?[ \t]*(#.*)?")


@dataclass(frozen=True, slots=True)
class Edited:
    data: bytes
    added: str
    """What is new in it, as it stands there."""
    fleet: Fleet


def with_node(data: bytes, file: Path, name: str, values: Mapping[str, object]) -> Edited:
    """The inventory with one node more. `file` is only spoken of, neither read nor written."""
    before = _values(data, file)
    nodes = before.get("nodes")
    nodes = nodes if isinstance(nodes, dict) else {}
    if name in nodes:
        raise FleetError(
            f"there is a node {name!r} already in {file}",
            hint=f"fleetctl provision {name}; or give the new one another name with --as NAME",
            exit_code=Exit.USAGE,
        )
    try:
        text, added = _edited(data.decode(), name, values)
        after = document.read(text.encode(), str(file))
    except (_Unclear, InvalidFile, yaml.YAMLError):
        raise _uneditable(file, name, values) from None
    # As text, since 1 is not true here, and the order counts.
    if repr(after.value) != repr({**before, "nodes": {**nodes, name: values}}):
        raise _uneditable(file, name, values)
    try:
        fleet, _ = parse(text.encode(), file)
    except InvalidFile as error:
        for problem in error.problems:
            if problem.where[:2] == ("nodes", name):  # no line of the file can be shown for it
                what = f"{problem.path}: {problem.what}"
                raise FleetError(what, hint=problem.right, exit_code=Exit.USAGE) from None
        raise
    return Edited(text.encode(), added, fleet)


def _values(data: bytes, file: Path) -> dict[str, document.Value]:
    """What the file says; its own errors come first. Only `nodes` may be missing."""
    value = document.read(data, str(file)).value
    if value is not None and (not isinstance(value, dict) or "nodes" in value):
        parse(data, file)
    return value if isinstance(value, dict) else {}


class _Unclear(Exception):
    """Nobody can say where the node belongs."""


def _edited(text: str, name: str, values: Mapping[str, object]) -> tuple[str, str]:
    """The new text, and what was put into it."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    section = ("nodes", {name: values})
    if not isinstance(root, yaml.MappingNode):
        return _insert_lines(text, len(text), 0, _lines(*section, 2, "  ", _plain))
    write = _way_of_writing(root)
    found = [at for at, (key, _) in enumerate(root.value) if key.value == "nodes"]
    if not found:
        if root.flow_style:
            return _insert_into_flow(text, root, f"{write('nodes')}: {_flow(section[1], write)}")
        return _insert_below(text, root, _lines(*section, 2, _step(root), write))
    _, nodes = root.value[found[0]]
    if isinstance(nodes, yaml.ScalarNode):  # `nodes:` and nothing behind it
        lines = [_step(root) + line for line in _lines(name, values, 1, _step(root), write)]
        column = root.start_mark.column
        following = [key.start_mark for key, _ in root.value[found[0] + 1 :]]
        limit = (*following, root.end_mark)[0].index
        return _insert_lines(text, _end_of_section(text, limit, column + 1), column, lines)
    if not isinstance(nodes, yaml.MappingNode):
        raise _Unclear
    if nodes.flow_style:
        return _insert_into_flow(text, nodes, f"{write(name)}: {_flow(values, write)}")
    last = nodes.value[-1][1]
    on_one_line = isinstance(last, yaml.MappingNode) and last.flow_style
    lines = _lines(name, values, 0 if on_one_line else 1, _step(nodes, root), write)
    return _insert_below(text, nodes, lines)


def _insert_below(text: str, mapping: yaml.MappingNode, lines: list[str]) -> tuple[str, str]:
    """After the last pair of a mapping in block style, with a blank line where it has them."""
    last = mapping.value[-1][0].start_mark
    above = reversed(text[: last.index].split("\n")[:-1])
    between = takewhile(lambda line: line.lstrip()[:1] in ("", "#"), above)
    if len(mapping.value) > 1 and not all(map(str.strip, between)):
        lines = ["", *lines]
    at = _end_of_section(text, mapping.end_mark.index, last.column)
    return _insert_lines(text, at, last.column, lines)


def _end_of_section(text: str, limit: int, column: int) -> int:
    """After the last of its lines, and after the comments below that are indented as they are.

    `limit` is where something else begins: the mark at the end of a block lies there.
    """
    lines = text[:limit].split("\n")
    while lines and not _belongs(lines[-1], column):
        lines.pop()
    return min(sum(len(line) + 1 for line in lines), limit)


def _belongs(line: str, column: int) -> bool:
    inner = line.lstrip()
    return bool(inner) and (not inner.startswith("#") or len(line) - len(inner) >= column)


def _insert_lines(text: str, at: int, column: int, lines: list[str]) -> tuple[str, str]:
    added = "".join(f"{' ' * column}{line}".rstrip(" ") + "\n" for line in lines)
    newline = "\n" if at and text[at - 1] != "\n" else ""
    return text[:at] + newline + added + text[at:], added.strip("\n")


def _insert_into_flow(text: str, mapping: yaml.MappingNode, entry: str) -> tuple[str, str]:
    if not mapping.value:
        at = text.index("{", mapping.start_mark.index) + 1
        return text[:at] + entry + text[at:], entry
    key, value = mapping.value[-1]
    start, end = key.start_mark.index, value.end_mark.index
    if value.start_mark.index < start:  # an alias, and the marks are those of its anchor
        alias = _ALIAS.match(text, key.end_mark.index)
        end = alias.end() if alias else key.end_mark.index
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    if indent.strip():
        return f"{text[:end]}, {entry}{text[end:]}", entry
    line_end = text.find("\n", end)
    rest = _REST_OF_LINE.fullmatch(text, end, line_end)
    if line_end < 0 or not rest:
        return f"{text[:end]},\n{indent}{entry}{text[end:]}", indent + entry
    comma_before, comma_after = ("", ",") if rest[1] else (",", "")
    line = indent + entry + comma_after
    return f"{text[:end]}{comma_before}{rest[0]}\n{line}{text[line_end:]}", line


def _step(*mappings: yaml.MappingNode) -> str:
    """By how much the file indents."""
    for mapping in mappings:
        for key, value in mapping.value:
            if isinstance(value, yaml.MappingNode) and not value.flow_style:
                deeper = value.value[0][0].start_mark.column - key.start_mark.column
                return " " * int(max(deeper, 1))
    return "  "


def _way_of_writing(root: yaml.MappingNode) -> Write:
    quoted = bool(root.value[0][0].style) if root.value else root.flow_style
    return yaml_flow.encode if quoted else _plain


def _plain(key: str) -> str:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]+", key) and yaml_flow.decode(key) == key
    return key if plain else yaml_flow.encode(key)


def _lines(key: str, value: object, levels: int, step: str, write: Write) -> list[str]:
    """In block style for so many levels, in flow style below them."""
    if not levels or not isinstance(value, Mapping):
        return [f"{write(key)}: {_flow(value, write)}"]
    inner = [line for pair in value.items() for line in _lines(*pair, levels - 1, step, write)]
    return [f"{write(key)}:", *(step + line for line in inner)]


def _flow(value: object, write: Write) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{write(k)}: {_flow(v, write)}" for k, v in value.items()) + "}"
    return yaml_flow.encode(value)


def _uneditable(file: Path, name: str, values: Mapping[str, object]) -> FleetError:
    snippet = "\n".join(_lines("nodes", {name: values}, 2, "  ", _plain))
    return FleetError(
        f"fleetctl does not know where in {file} a node belongs; nothing was written",
        hint=f"add it by hand, then: fleetctl provision {name}\n{snippet}",
        exit_code=Exit.USAGE,
    )
