"""pydantic's findings in our own words: what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fleetctl.inventory.document import Value
from fleetctl.inventory.problems import Path, Problem, did_you_mean
from fleetctl.inventory.schema import EnvSection
from fleetctl.model import variables

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


def problems(error: ValidationError, data: Value, schema: type[BaseModel]) -> list[Problem]:
    return [_problem(each, data, schema) for each in error.errors(include_url=False)]


def _problem(error: ErrorDetails, data: Value, schema: type[BaseModel]) -> Problem:
    where = tuple(_steps(error["loc"], data))
    match error["type"]:
        case "extra_forbidden":
            return _unknown_key(where, _section(schema, error["loc"][:-1]))
        case "missing":
            return Problem(where, f"has no {error['loc'][-1]!r}", "it must be given")
        case "value_error":
            return Problem(where, str(error["ctx"]["error"]))
    expected = _EXPECTED.get(error["type"], error["msg"]).format_map(error.get("ctx", {}))
    return Problem(where, f"is {_shown(error['input'])}", f"it must be {expected}")


def _steps(location: tuple[int | str, ...], data: Value) -> Iterator[int | str]:
    """The steps that exist in the data; pydantic adds marks of its own to a location."""
    here: Any = data
    for step in location:
        known = (
            here if isinstance(here, dict) else range(len(here) if isinstance(here, list) else 0)
        )
        if step in known:
            here = here[step]
            yield step


def _unknown_key(where: Path, section: type[BaseModel]) -> Problem:
    if key := variables.key_of(str(where[-1])):
        return Problem(where, "has a key of its own", f"use ollama.{key}")
    fields = section.model_fields.items()
    known = [name for name, field in fields if field.json_schema_extra is None]
    what = "is not a key that fleetctl knows"
    if section is EnvSection:
        what = "is not a variable that fleetctl sets"
    return Problem(where, what, did_you_mean(str(where[-1]), known))


def _section(schema: type[BaseModel], location: Path) -> type[BaseModel]:
    """The section at a location, in which names stand between."""
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
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
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
