"""file: a file of the user's own on a node, from a template or as it stands in the playbook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from posixpath import normpath
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from fleetctl.model.facts import LARGEST_FILE, File, Unknown
from fleetctl.model.plan import Change, Finding, Level, WriteFile
from fleetctl.shell import AS_ROOT, Part, quote
from fleetctl.steps import Step, Subject

_READ = """
{as_root}
section mode
ls -ldn {path} 2>/dev/null || as_root ls -ldn {path}
section content
{{ [ -f {path} ] && head -c {most} {path}; }} 2>/dev/null ||
  as_root /bin/sh -c '[ -f "$1" ] && head -c {most} "$1"' sh {path} || echo @unreadable
"""
_AS_NOBODY_ELSE = "as_root() { false; }"


def _path(text: str) -> str:
    plain = text.isprintable() and normpath(text) == text and text != "/"
    if not plain or not text.startswith(("/", "~/")) or text.startswith("//"):
        raise ValueError("must be an absolute path of a file, or start with ~/")
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
        question = _READ.format(
            as_root=AS_ROOT if self.sudo else _AS_NOBODY_ELSE,
            path=in_shell(self.path),
            most=LARGEST_FILE + 1,
        )
        return [Part(f"file {self.path}", question, for_root=self.sudo)]

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
        text = f"what is in {path} is not known, because {file.content.why}"
        yield Finding(Level.OBSTACLE, text, "move it out of the way, or use -K if root may read it")
    elif file.content != wanted.after:
        yield replace(wanted, before=file.content)
    elif file.mode and file.permissions != wanted.mode:
        mode = f"{file.permissions:04o} → {wanted.mode:04o}"
        yield replace(wanted, before=file.content, details=(f"mode of {path} {mode}",))
