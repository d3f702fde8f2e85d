"""file: a file of the user's own on a node, from a template or as it stands in the playbook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from fleetctl.model.facts import File, Unknown
from fleetctl.model.plan import Change, Finding, Level, WriteFile
from fleetctl.shell import Part, quote
from fleetctl.steps import Step, Subject

_READ = """
section mode; ls -ldn {path} 2>/dev/null
section content
[ ! -e {path} ] || {{ [ -f {path} ] && head -c 1048576 {path}; }} 2>/dev/null || echo @unreadable
"""


def _path(text: str) -> str:
    if not text.startswith(("/", "~/")) or not text.isprintable() or "/../" in f"{text}/":
        raise ValueError("must be an absolute path, or start with ~/")
    return text


class FileStep(Step):
    path: Annotated[str, AfterValidator(_path)]
    template: str | None = None
    content: str | None = None
    mode: Annotated[str, Field(pattern=r"^0[0-7]{3}$")] = "0644"
    sudo: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.template is None) == (self.content is None):
            raise ValueError("needs either `template` or `content`")
        return self

    def probe(self, name: str) -> list[Part]:
        return [Part(f"file {self.path}", _READ.format(path=in_shell(self.path)))]

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        after = self.content
        if self.template is not None:
            values = {"node": subject.node, "fleet": subject.fleet}
            after = subject.templates.render(self.template, values)
        file = subject.facts.files.get(self.path, File(None))
        mode = int(self.mode, 8)
        yield from difference(
            file, WriteFile(self.path, None, after or "", mode, as_root=self.sudo)
        )


def in_shell(path: str) -> str:
    """A path as a word of a script; `~` is the user's home."""
    return f'"$HOME"{quote(path[1:])}' if path.startswith("~") else quote(path)


def difference(file: File, wanted: WriteFile) -> Iterator[WriteFile | Finding]:
    """`wanted` as a change of what is there, if it is one."""
    path = wanted.path
    if file.mode and not file.mode.startswith("-"):
        yield Finding(Level.OBSTACLE, f"{path} is not a regular file", "move it out of the way")
    elif isinstance(file.content, Unknown):
        yield Finding(Level.UNKNOWN, f"{path} is not known, because {file.content.why}")
    elif file.content != wanted.after:
        yield replace(wanted, before=file.content)
    elif file.mode and file.permissions != wanted.mode:
        mode = f"{file.permissions:04o} → {wanted.mode:04o}"
        yield replace(wanted, before=file.content, details=(f"mode of {path} {mode}",))
