"""Templates → text.

Each interpolation is one whole value, and the type of the file says how it is written. What was
rendered is parsed back, and every value that went in must be found in it unaltered.

jinja2 is imported with the first template, while the facts of the nodes are being gathered.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fleetctl import packaged
from fleetctl.errors import Exit, FleetError

if TYPE_CHECKING:
    import jinja2

_CODECS = {
    ".brew": "homebrew_env",
    ".conf": "systemd_unit",
    ".dotenv": "dotenv",
    ".env": "systemd_env_file",
    ".md": "front_matter",
    ".plist": "plist",
    ".service": "systemd_unit",
    ".sh": "sh",
    ".yaml": "yaml_flow",
}
_TYPED = (".md", ".yaml")
"""Where a number is not a text."""
_WHOLE = "each {{ … }} must be one whole value, with nothing around it but what the format has"
_LANGUAGE = "see fleetctl docs playbooks for what a template may contain"


class Word(str):
    """The name of a variable or a key: written as it is, since no format quotes those."""

    def __new__(cls, text: str) -> Word:
        if not text.isidentifier() or not text.isascii():
            raise ValueError(f"{text!r} is not a name")
        return super().__new__(cls, text)


class _View(Mapping[str, object]):
    """A read-only view of a mapping, or of a dataclass by the names of its fields."""

    def __init__(self, names: Iterable[str], get: Callable[[str], object]) -> None:
        self._names = tuple(names)
        self._get = get

    def __getitem__(self, name: str) -> object:
        if name not in self._names:
            raise KeyError(name)
        return plain(self._get(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def plain(value: object) -> object:
    """A value as templates and expressions get it: only text, numbers, tuples and read-only
    mappings, so that nothing in a project's files can reach an object with methods of its own."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return _View(map(str, value), value.__getitem__)
        case tuple() | list() | set() | frozenset():
            return tuple(plain(inner) for inner in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in dataclasses.fields(value) if field.repr]
        properties = [n for n, member in vars(type(value)).items() if isinstance(member, property)]
        return _View((*shown, *properties), partial(getattr, value))
    return str(value)


def evaluate(expression: str, values: Mapping[str, object]) -> object:
    """The value of one expression, as jinja2 understands it."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=True)
    compiled = environment.compile_expression(expression, undefined_to_none=False)
    return compiled(**{name: plain(value) for name, value in values.items()})


@dataclass(slots=True)
class _Output:
    """What a template has given so far, and the values that went in."""

    text: str = ""
    values: list[object] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)
    """Those below the front matter of a Markdown file, where text needs no quoting."""


class Templates:
    """The project's own templates first, then those that come with fleetctl."""

    def __init__(self, project: Path) -> None:
        self._folders = (str(project / "templates"), str(packaged.folder("templates")))
        self._environments: dict[str, jinja2.Environment] = {}

    def render(self, name: str, values: Mapping[str, object]) -> str:
        suffix = Path(name).suffix
        if suffix not in _CODECS:
            what = f"fleetctl cannot write {suffix or 'such'} files"
            raise _broken(name, what, f"the name of a template ends in {', '.join(_CODECS)}")
        codec = import_module(f"fleetctl.codecs.{_CODECS[suffix]}")
        plain_values = {key: plain(value) for key, value in values.items()}
        output = _Output()
        try:
            template = self._environment(suffix, codec).get_template(name)
            for chunk in template.generate(plain_values, _output=output):
                output.text += chunk
        except FleetError:
            raise
        except Exception as error:  # a template is a program, and can fail in any way
            what = str(error) or type(error).__name__
            raise _broken(self._place(error) or name, what, _LANGUAGE) from None
        try:
            parsed = codec.decode(output.text) if output.values or output.body else ()
        except Exception as error:  # each parser has its own
            what = f"what it gives is no {suffix} file: {' '.join(str(error).split())}"
            raise _broken(name, what, _WHOLE) from None
        _found(name, parsed, output)
        return output.text

    def _place(self, error: Exception) -> str | None:
        """Where in a template it happened; jinja2 puts the template's lines into tracebacks."""
        from traceback import walk_tb

        places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        ours = [f"{file}:{line}" for file, line in places if file.startswith(self._folders)]
        return ours[-1] if ours else None

    def _environment(self, suffix: str, codec: ModuleType) -> jinja2.Environment:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        if suffix not in self._environments:
            self._environments[suffix] = ImmutableSandboxedEnvironment(
                loader=jinja2.FileSystemLoader(self._folders),
                finalize=_writing_with(codec, typed=suffix in _TYPED),
                undefined=jinja2.StrictUndefined,
                trim_blocks=True,
                lstrip_blocks=True,
                keep_trailing_newline=True,
                autoescape=False,
            )
        return self._environments[suffix]


def _writing_with(
    codec: ModuleType, *, typed: bool
) -> Callable[[jinja2.runtime.Context, object], str]:
    """Encodes each value for its place in the file, and records it to be compared afterwards."""
    import jinja2

    @jinja2.pass_context
    def finalize(context: jinja2.runtime.Context, value: object) -> str:
        if isinstance(value, Word):
            return str(value)
        if isinstance(value, jinja2.Undefined):
            str(value)  # raises, and says what there is not
        output: _Output = context["_output"]
        in_body = hasattr(codec, "is_body") and codec.is_body(output.text)
        if type(value) is int and (in_body or not typed):
            value = str(value)
        (output.body if in_body else output.values).append(value)
        try:
            return str(codec.encode_body(value) if in_body else codec.encode(value))
        except (AttributeError, TypeError):
            raise TypeError(f"{reprlib.repr(value)} is no value for such a file") from None

    return finalize


def _found(name: str, parsed: Any, output: _Output) -> None:
    """Raises unless every value is in what was parsed, and those of a body are in it in order."""
    leaves = list(_leaves(parsed))
    missing = [leaf for value in output.values for leaf in _leaves(value) if leaf not in leaves]
    body, at = parsed[1] if output.body else "", 0
    for text in output.body:
        if (found := body.find(text, at)) < 0:
            missing.append(text)
        at = max(at, found + len(text))
    if missing:
        what = f"the value {missing[0]!r} is not what stands there afterwards"
        raise _broken(name, what, _WHOLE)


def _leaves(value: object) -> Iterator[Any]:
    match value:
        case Mapping():
            for inner in value.values():
                yield from _leaves(inner)
        case str():
            yield value
        case Sequence():
            for inner in value:
                yield from _leaves(inner)
        case _:
            yield value


def _broken(name: str, why: str, hint: str) -> FleetError:
    return FleetError(f"the template {name}: {why}", hint=hint, exit_code=Exit.USAGE)
