"""Templates → text.

Each interpolation is one whole value, and the type of the file says how it is written. What was
rendered is parsed back, and every value that went in must be found in it unaltered.

jinja2 is loaded when the first template is, which is while the nodes are still being waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    ".env": "systemd_env_file",
    ".md": "front_matter",
    ".plist": "plist",
    ".service": "systemd_unit",
    ".sh": "sh",
    ".yaml": "yaml_flow",
}


class Word(str):
    """The name of a variable or a key: written as it is, since no format quotes those."""

    def __new__(cls, text: str) -> Word:
        if not text.isidentifier() or not text.isascii():
            raise ValueError(f"{text!r} is not a name")
        return super().__new__(cls, text)


class Templates:
    """The project's own templates first, then those that come with fleetctl."""

    def __init__(self, project: Path) -> None:
        self._folders = [str(project / "templates"), str(packaged.folder("templates"))]
        self._environments: dict[str, jinja2.Environment] = {}

    def render(self, name: str, values: Mapping[str, object]) -> str:
        import jinja2

        suffix = Path(name).suffix
        if suffix not in _CODECS:
            raise _broken(name, f"fleetctl cannot write {suffix or 'such'} files")
        codec = import_module(f"fleetctl.codecs.{_CODECS[suffix]}")
        written: list[object] = []
        try:
            template = self._environment(suffix, codec).get_template(name)
            text = template.render(values, _written=written)
        except jinja2.TemplateError as error:
            raise _broken(name, str(error)) from None
        _found(name, codec.decode(text) if written else (), written)
        return text

    def _environment(self, suffix: str, codec: ModuleType) -> jinja2.Environment:
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment

        if suffix not in self._environments:
            self._environments[suffix] = SandboxedEnvironment(
                loader=jinja2.FileSystemLoader(self._folders),
                finalize=_writing_with(codec),
                undefined=jinja2.StrictUndefined,
                trim_blocks=True,
                lstrip_blocks=True,
                keep_trailing_newline=True,
                autoescape=False,
            )
        return self._environments[suffix]


def _writing_with(codec: ModuleType) -> Callable[[jinja2.runtime.Context, object], str]:
    """Encodes each value, and notes it for the parsing back."""
    import jinja2

    @jinja2.pass_context
    def finalize(context: jinja2.runtime.Context, value: object) -> str:
        if isinstance(value, Word):
            return str(value)
        context["_written"].append(value)
        return str(codec.encode(value))

    return finalize


def _found(name: str, parsed: object, written: Sequence[object]) -> None:
    there = list(_leaves(parsed))
    for value in written:
        for leaf in _leaves(value):
            if leaf not in there:
                raise _broken(name, f"the value {leaf!r} is not what stands there afterwards")


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


def _broken(name: str, why: str) -> FleetError:
    return FleetError(
        f"the template {name}: {why}",
        hint="each {{ … }} must be one whole value, with nothing around it but what the format has",
        exit_code=Exit.USAGE,
    )
