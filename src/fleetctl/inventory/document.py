"""YAML text → plain values, strictly.

A value means what it looks like. Only `true`, `false`, `null`, `~`, nothing at all, and decimal
integers are more than text, so `NO`, `22:22`, `1.10` and `017` stay as they were written. Duplicate
keys, tags, merge keys and several documents are errors. Budgets for size, depth and aliases are
kept while the text is read, so that a hostile file costs no more than an honest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from fleetctl.inventory.problems import Path, Position, Problem

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_ALIASED = 100_000

Value = None | bool | int | str | list["Value"] | dict[str, "Value"]

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_UNWANTED = re.compile("\r|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


class Unreadable(Exception):
    """The text ends or breaks off in a way that leaves nothing to validate."""

    def __init__(self, what: str, right: str | None = None, at: Position | None = None) -> None:
        super().__init__(what)
        self.problem = Problem((), f"the file {what}", right, at)


@dataclass(slots=True)
class Document:
    """The value of a document, and what is wrong with its form."""

    value: Value = None
    problems: list[Problem] = field(default_factory=list)
    positions: dict[Path, Position] = field(default_factory=dict)


def read(data: bytes, *, with_positions: bool = False) -> Document:
    """Positions of all values cost as much again; they are only needed to report an error."""
    reader = _Reader(with_positions)
    for event in _events(_text(data)):
        reader.take(event)
    return reader.document


def located(problems: Iterable[Problem], data: bytes) -> list[Problem]:
    """The same problems, in the order of the document, each with the place nearest to it."""
    positions = read(data, with_positions=True).positions

    def at(problem: Problem) -> Position:
        where = problem.where
        while where not in positions and where:
            where = where[:-1]
        return problem.at or positions.get(where, Position(1, 1))

    placed = [Problem(each.where, each.what, each.right, at(each)) for each in problems]
    return sorted(placed, key=lambda each: each.at.line if each.at else 0)


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise Unreadable(f"has more than {MAX_BYTES // 2**20} MiB", "split the fleet")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("starts with a byte order mark", "save it as UTF-8 without one")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        at = _position_after(data[: error.start].decode())
        raise Unreadable("is not UTF-8 text", "save it as UTF-8", at) from None
    if found := _UNWANTED.search(text):
        at = _position_after(text[: found.start()])
        if found[0] == "\r":
            raise Unreadable("has Windows line endings (CRLF)", "save it with LF endings", at)
        raise Unreadable(f"holds the control character U+{ord(found[0]):04X}", "delete it", at)
    return text


def _position_after(text: str) -> Position:
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Mark(Protocol):
    """The C parser has a class of its own for marks."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


def _position(mark: _Mark | None) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        end = _position_after(text)
        at = min(_position(mark), end, key=lambda position: position.line)
        if mark and re.match(r" *\t", "".join(text.splitlines()[mark.line : mark.line + 1])):
            raise Unreadable("is indented with a tab", "use spaces", at) from None
        what = f"is not valid YAML: {error.problem or error.context}"
        raise Unreadable(what, "check quotes, brackets and indentation here", at) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"is not valid YAML: {error}") from None


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    value: list[Value] | dict[str, Value]
    step: str | int | None
    anchor: str | None
    size: int = 1
    key: str | None = None
    key_at: _Mark | None = None


class _Reader:
    """Builds the value from the parser's events, without recursion."""

    def __init__(self, with_positions: bool) -> None:
        self.document = Document()
        self._with_positions = with_positions
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._aliased = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    at = _position(event.start_mark)
                    raise Unreadable("holds a second document", "delete the `---`", at)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._refuse_tag(event)
        if self._awaits_key:
            self._key(event)
            return
        value: Value = event.value
        if event.implicit[0]:
            if value in _WORDS:
                value = _WORDS[event.value]
            elif _INTEGER.fullmatch(event.value):
                value = int(event.value)
        self._add(event, value, 1)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)

    def _key(self, event: yaml.ScalarEvent) -> None:
        top = self._stack[-1]
        if event.implicit[0] and event.value == "<<":
            self._problem(event, "a merge key (<<) is not supported", "use `groups` or `defaults`")
        if event.value in top.value:
            self._problem(event, f"the key {event.value!r} is there twice", "delete one of them")
        top.key, top.key_at = event.value, event.start_mark

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._refuse_tag(event)
        at = _position(event.start_mark)
        if self._awaits_key:
            raise Unreadable("has a key that is not text", "quote it", at)
        if len(self._stack) >= MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH} levels", at=at)
        value: list[Value] | dict[str, Value]
        value = {} if isinstance(event, yaml.MappingStartEvent) else []
        step = self._add(event, value, 1)
        self._stack.append(_Open(value, step, event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        if self._stack:
            self._stack[-1].size += done.size - 1
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)

    def _alias(self, event: yaml.AliasEvent) -> None:
        at = _position(event.start_mark)
        if self._awaits_key:
            raise Unreadable("has an alias for a key", "write the key out", at)
        if event.anchor not in self._anchors:
            right = "an anchor must stand before its alias, not around it"
            raise Unreadable(f"has an alias *{event.anchor} without an anchor", right, at)
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise Unreadable("grows beyond all bounds by its aliases", "write it out", at)
        self._add(event, value, size)

    @property
    def _awaits_key(self) -> bool:
        return (
            bool(self._stack)
            and isinstance(self._stack[-1].value, dict)
            and (self._stack[-1].key is None)
        )

    def _add(self, event: yaml.NodeEvent, value: Value, size: int) -> str | int | None:
        """Put a value where the document has it; returns its key or index there."""
        step: str | int | None = None
        at: _Mark | None = event.start_mark
        if not self._stack:
            self.document.value = value
        else:
            top = self._stack[-1]
            top.size += size
            if isinstance(top.value, list):
                step = len(top.value)
                top.value.append(value)
            elif top.key is not None:
                step, at, top.key = top.key, top.key_at or at, None
                top.value[step] = value
        if self._with_positions:
            self.document.positions[self._path(step)] = _position(at)
        return step

    def _path(self, *last: str | int | None) -> Path:
        steps = [*(each.step for each in self._stack), *last]
        return tuple(step for step in steps if step is not None)

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None and event.tag != "!":
            self._problem(event, f"the tag {event.tag} is not supported", "take it out")

    def _problem(self, event: yaml.Event, what: str, right: str) -> None:
        at = _position(event.start_mark)
        self.document.problems.append(Problem(self._path(), what, right, at))
