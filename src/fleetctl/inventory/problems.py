"""A problem in a YAML file, and the error that reports all problems of a file at once.

Imports neither pydantic nor YAML: commands that load no inventory also use `did_you_mean`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin

from fleetctl.errors import Exit, FleetError
from fleetctl.model import variables

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from fleetctl.inventory.document import Value

KeyPath = tuple[str | int, ...]
"""The keys and list indexes that lead to a value."""


@dataclass(frozen=True, slots=True)
class Position:
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One place in a file, what is wrong there, and how to fix it."""

    where: KeyPath
    what: str
    hint: str | None = None
    at: Position | None = None

    def line(self, file: str, kind: str = "") -> str:
        """`file:line:column: path: what is wrong; how to fix it`."""
        at = f"{self.at.line}:{self.at.column}: " if self.at else " "
        path = f"{self.path}: " if self.where else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{file}:{at}{kind}{path}{self.what}{hint}"

    @property
    def path(self) -> str:
        return ".".join(map(str, self.where))

    def document(self) -> dict[str, object]:
        return {
            "line": self.at and self.at.line,
            "column": self.at and self.at.column,
            "path": self.path,
            "what": self.what,
            "hint": self.hint,
        }


class InvalidFile(FleetError):
    """A file written by the user is invalid; `problems` lists the reasons."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        super().__init__(f"{file}: {count}", exit_code=Exit.USAGE)
        self.file = file
        self.problems = tuple(problems)

    def details(self) -> list[str]:
        return [problem.line(self.file) for problem in self.problems]

    def document(self) -> dict[str, object]:
        return {
            **super().document(),
            "file": self.file,
            "problems": [problem.document() for problem in self.problems],
        }


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: similar names, or else the known ones."""
    import difflib  # slow to import, and only needed for an error

    names = sorted(known)
    if similar := difflib.get_close_matches(word, names, n=3, cutoff=0.65):
        return f"did you mean {' or '.join(sorted(similar))}?"
    if not names:
        return "none is defined"
    shown = ", ".join(names[:12])
    return f"known: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "greater_than_equal": "at least {ge}",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "a mapping (key: value)",
    "string_type": "text",
    "too_long": "text of at most {max_length} characters",
    "too_short": "text that is not empty",
}
"""What pydantic expected, by its type of error."""


def validation_problems(
    error: ValidationError, data: Value, schema: type[BaseModel]
) -> list[Problem]:
    """pydantic's errors as problems, each with a path that exists in `data`."""
    return [_problem(details, data, schema) for details in error.errors(include_url=False)]


def _problem(error: ErrorDetails, data: Value, schema: type[BaseModel]) -> Problem:
    where = tuple(_existing_steps(error["loc"], data))
    match error["type"]:
        case "extra_forbidden":
            return _unknown_key(where, _section(schema, error["loc"][:-1]))
        case "missing":
            return Problem(where, f"has no {error['loc'][-1]!r}", "it must be given")
        case "value_error":
            return Problem(where, str(error["ctx"]["error"]))
    expected = _EXPECTED.get(error["type"], error["msg"]).format_map(error.get("ctx", {}))
    return Problem(where, f"is {_shown(error['input'])}", f"it must be {expected}")


def _existing_steps(location: KeyPath, data: Value) -> Iterator[int | str]:
    """The steps of a location that exist in the data; pydantic adds union tags to its locations."""
    here: Any = data
    for step in location:
        known = (
            here if isinstance(here, dict) else range(len(here) if isinstance(here, list) else 0)
        )
        if step in known:
            here = here[step]
            yield step


def _unknown_key(where: KeyPath, section: type[BaseModel]) -> Problem:
    from fleetctl.inventory.schema import EnvSection

    if key := variables.key_of(str(where[-1])):
        return Problem(where, "has a key of its own", f"use ollama.{key}")
    fields = section.model_fields.items()
    known = [name for name, field in fields if field.json_schema_extra is None]
    what = "is not a variable that fleetctl sets" if section is EnvSection else "is an unknown key"
    return Problem(where, what, did_you_mean(str(where[-1]), known))


def _section(schema: type[BaseModel], location: KeyPath) -> type[BaseModel]:
    """The section class at a location; user-chosen names (of nodes, models …) are skipped."""
    section, is_name = schema, False
    for step in location:
        if is_name:
            is_name = False
        elif isinstance(step, str) and step in section.model_fields:
            annotation = section.model_fields[step].annotation
            section = next(_sections(annotation), section)
            is_name = get_origin(annotation) is dict
    return section


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The section classes inside a type such as `dict[Name, NodeSection]`."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)


def _shown(value: object) -> str:
    match value:
        case None:
            return "empty"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return "true" if value else "false"
        case str() if len(value) > 60:
            return f"{value[:57]!r}..."
    return repr(value)
