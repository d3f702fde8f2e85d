"""YAML text → plain values, strictly.

Only `true`, `false`, `null`, `~`, an empty value and decimal integers are converted; everything
else is text, so `NO`, `22:22`, `1.10` and `017` stay as written. Duplicate keys, tags, merge keys
and several documents are errors. Size, depth and the expansion of aliases are limited while
reading, so a hostile file cannot use much time or memory.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from fleetctl.inventory.problems import InvalidFile, KeyPath, Position, Problem

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_ALIASED = 100_000

Value = None | bool | int | str | list["Value"] | dict[str, "Value"]

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_UNWANTED = re.compile("\r|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


class _Unreadable(Exception):
    """The text cannot be parsed, so there are no values to validate."""

    def __init__(self, what: str, hint: str | None = None, at: Position | None = None) -> None:
        super().__init__(what)
        self.problem = Problem((), f"the file {what}", hint, at)


@dataclass(slots=True)
class Document:
    """The value of a document, and the problems of its form (duplicate keys, tags …)."""

    value: Value = None
    problems: list[Problem] = field(default_factory=list)
    positions: dict[KeyPath, Position] = field(default_factory=dict)


def read(data: bytes, file: str) -> Document:
    """The document in these bytes; raises InvalidFile where they cannot be parsed."""
    try:
        return parse(data)
    except _Unreadable as error:
        raise InvalidFile(file, [error.problem]) from None


def parse(data: bytes, *, with_positions: bool = False) -> Document:
    """Recording positions doubles the time, so it is only done to report an error."""
    events = _events(_text(data))
    reader = _Reader(events, with_positions)
    documents = 0
    for event in events:
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    at = _position(event.start_mark)
                    raise _Unreadable("contains a second document", "delete the `---`", at)
            case yaml.NodeEvent():
                reader.document.value = reader.value(event, ())
    return reader.document


def located(problems: Iterable[Problem], data: bytes) -> list[Problem]:
    """The problems in the order of the file, each with the position of its nearest parent."""
    positions = parse(data, with_positions=True).positions

    def at(problem: Problem) -> Position:
        where = problem.where
        while where not in positions and where:
            where = where[:-1]
        return problem.at or positions.get(where, Position(1, 1))

    placed = [replace(problem, at=at(problem)) for problem in problems]
    return sorted(placed, key=lambda problem: problem.at.line if problem.at else 0)


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise _Unreadable(f"is larger than {MAX_BYTES // 2**20} MiB", "split the fleet")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise _Unreadable("starts with a byte order mark", "save it as UTF-8 without one")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        at = _position_after(data[: error.start].decode())
        raise _Unreadable("is not UTF-8 text", "save it as UTF-8", at) from None
    if found := _UNWANTED.search(text):
        at = _position_after(text[: found.start()])
        if found[0] == "\r":
            raise _Unreadable("has Windows line endings (CRLF)", "save it with LF endings", at)
        raise _Unreadable(f"contains the control character U+{ord(found[0]):04X}", "delete it", at)
    return text


def _position_after(text: str) -> Position:
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def _position(mark: Any) -> Position:
    """`mark` is of PyYAML's class or of the C parser's own."""
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        end = _position_after(text)
        at = min(_position(mark), end, key=lambda position: position.line)
        if mark and re.match(r" *\t", "".join(text.splitlines()[mark.line : mark.line + 1])):
            raise _Unreadable("is indented with a tab", "use spaces", at) from None
        what = f"is not valid YAML: {error.problem or error.context}"
        raise _Unreadable(what, "check quotes, brackets and indentation here", at) from None
    except yaml.YAMLError as error:
        raise _Unreadable(f"is not valid YAML: {error}") from None


class _Reader:
    """Builds values from the parser's events, within the limits for depth and aliases."""

    def __init__(self, events: Iterator[yaml.Event], with_positions: bool) -> None:
        self.document = Document()
        self._events = events
        self._with_positions = with_positions
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._values = 0
        self._aliased = 0

    def value(self, event: yaml.Event, path: KeyPath, key: yaml.Event | None = None) -> Value:
        """The value that starts with this event; the position of a mapping's value is its key."""
        if self._with_positions:
            self.document.positions[path] = _position((key or event).start_mark)
        before = self._values
        self._values += 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        self._refuse_tag(event, path)
        value: Value
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif len(path) >= MAX_DEPTH:
            at = _position(event.start_mark)
            raise _Unreadable(f"is nested deeper than {MAX_DEPTH} levels", at=at)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(path)
        else:
            value = self._list(path)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _list(self, path: KeyPath) -> list[Value]:
        items: list[Value] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self.value(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, Value]:
        entries: dict[str, Value] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            if key in entries:
                self._problem(event, path, f"the key {key!r} appears twice", "delete one of them")
            entries[key] = self.value(next(self._events), (*path, key), event)
        return entries

    def _key(self, event: yaml.Event, path: KeyPath) -> str:
        if isinstance(event, yaml.AliasEvent):
            at = _position(event.start_mark)
            raise _Unreadable("has an alias for a key", "write the key out", at)
        if not isinstance(event, yaml.ScalarEvent):
            at = _position(event.start_mark)
            raise _Unreadable("has a key that is not text", "quote it", at)
        self._refuse_tag(event, path)
        if event.implicit[0] and event.value == "<<":
            hint = "use `groups` or `defaults`"
            self._problem(event, path, "a merge key (<<) is not supported", hint)
        return event.value

    def _alias(self, event: yaml.AliasEvent) -> Value:
        at = _position(event.start_mark)
        if event.anchor not in self._anchors:
            hint = "define the anchor before its alias, and not around it"
            raise _Unreadable(f"has an alias *{event.anchor} without an anchor", hint, at)
        value, size = self._anchors[event.anchor]
        self._values += size - 1
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise _Unreadable("expands to too many values by its aliases", "write them out", at)
        return value

    def _refuse_tag(
        self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, path: KeyPath
    ) -> None:
        if event.tag is not None and event.tag != "!":
            self._problem(event, path, f"the tag {event.tag} is not supported", "delete it")

    def _problem(self, event: yaml.Event, path: KeyPath, what: str, hint: str) -> None:
        self.document.problems.append(Problem(path, what, hint, _position(event.start_mark)))


def _scalar(event: yaml.ScalarEvent) -> Value:
    if event.implicit[0]:  # not quoted
        if event.value in _WORDS:
            return _WORDS[event.value]
        if _INTEGER.fullmatch(event.value):
            return int(event.value)
    return event.value
