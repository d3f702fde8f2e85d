"""file: a file of the user on a node, or of the project on the controller."""

from collections.abc import Iterator
from dataclasses import replace
from posixpath import normpath
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from fleetctl.model.facts import ABSENT, Answers, File, Scope, Unknown
from fleetctl.model.fleet import Target
from fleetctl.model.plan import Change, Finding, Level, WriteFile
from fleetctl.shell import Question, files_in, files_question
from fleetctl.steps import Place, Step, StepContext

_EXPECTED = "must be an absolute path of a file, or start with ~/; on the controller a relative one"


def _path(text: str) -> str:
    plain = text.isprintable() and normpath(text) == text and text not in ("/", ".", "~")
    if not plain or text.startswith(("//", "../")) or text in ("", ".."):
        raise ValueError(_EXPECTED)
    return text


class FileStep(Step):
    kind: ClassVar[str] = "file"
    places: ClassVar[frozenset[Place]] = frozenset({"nodes", "controller"})
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

    def refusal(self, place: Place) -> str | None:
        """A node has no project folder, and the controller is changed only inside its own."""
        absolute = self.path.startswith(("/", "~/"))
        if place == "nodes" and not absolute:
            return _EXPECTED
        if place == "controller" and (absolute or self.sudo):
            return "must be relative to the project and without `sudo`, on the controller"
        return None

    def questions(self, target: Target) -> list[Question]:
        return [files_question("file", [self._on(target)], as_root=self.sudo)]

    def _on(self, target: Target) -> str:
        return f"{target.folder}/{self.path}" if target.folder else self.path

    def read(self, answers: Answers) -> File:
        return next(iter(files_in(answers["file"]).values()), ABSENT) if answers else ABSENT

    def plan(self, context: StepContext, seen: File) -> Iterator[Change | Finding]:
        after = self.content
        if self.template is not None:
            values = {"node": context.target.node, "fleet": context.fleet}
            after = context.templates.render(self.template, values)
        path = self._on(context.target)
        scope: Scope = "system" if self.sudo else "user"
        yield from difference(
            seen, WriteFile(path, None, after or "", int(self.mode, 8), scope=scope)
        )


def difference(file: File, wanted: WriteFile) -> Iterator[WriteFile | Finding]:
    """`wanted` as a change of the file that is there, if it is one."""
    path = wanted.path
    if file.mode and not file.mode.startswith("-"):
        text = f"{path} is not a regular file"
        yield Finding("ST002", Level.OBSTACLE, text, "move it out of the way")
    elif isinstance(file.content, Unknown):
        text = f"the content of {path} is not known, because {file.content.why}"
        hint = "move it out of the way, or use -K if root may read it"
        yield Finding("ST003", Level.OBSTACLE, text, hint)
    elif file.content != wanted.after:
        yield replace(wanted, before=file.content)
    elif file.mode and file.permissions != wanted.mode:
        mode = f"{file.permissions:04o} → {wanted.mode:04o}"
        yield replace(wanted, before=file.content, details=(f"mode of {path} {mode}",))
