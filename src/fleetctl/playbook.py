"""Playbooks: YAML files that list the steps. The built-in ones are all that fleetctl does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from fleetctl import packaged
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import (
    InvalidFile,
    Problem,
    did_you_mean,
    document,
    validation_problems,
)
from fleetctl.inventory.document import Value
from fleetctl.shell import Part
from fleetctl.steps import Step, Subject
from fleetctl.steps.command import CommandStep
from fleetctl.steps.file import FileStep
from fleetctl.steps.ollama_env import OllamaEnv
from fleetctl.steps.ollama_models import OllamaModels
from fleetctl.steps.ollama_service import OllamaService
from fleetctl.steps.power import Power
from fleetctl.steps.preflight import PreflightStep
from fleetctl.steps.wait_http import WaitHttp

KINDS: Mapping[str, type[Step]] = {
    "preflight": PreflightStep,
    "power": Power,
    "ollama_env": OllamaEnv,
    "ollama_service": OllamaService,
    "wait_http": WaitHttp,
    "ollama_models": OllamaModels,
    "file": FileStep,
    "command": CommandStep,
}
_SYSTEMS = {"linux": "Linux", "macos": "Darwin"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A step in a playbook, and when it applies."""

    name: str
    kind: str
    step: Step
    file: Path
    at: int
    """The place in the file's list."""
    system: str | None = None
    when: str | None = None

    def parts(self) -> list[Part]:
        parts = self.step.probe(self.name)
        return [replace(part, system=self.system or part.system) for part in parts]

    def applies(self, subject: Subject) -> bool:
        if self.system is not None and self.system != subject.facts.host.system:
            return False
        if self.when is None:
            return True
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment

        values = {"node": subject.node, "fleet": subject.fleet, "facts": subject.facts}
        environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=True)
        try:
            expression = environment.compile_expression(self.when, undefined_to_none=False)
            return bool(expression(**values))
        except Exception as error:  # an expression can fail in any way
            what = f"cannot be worked out: {error or type(error).__name__}"
            raise self._wrong(Problem(("steps", self.at, "when"), what)) from None

    def _wrong(self, problem: Problem) -> FleetError:
        (placed,) = document.located([problem], self.file.read_bytes())
        hint = "`when` is one expression over node, fleet and facts; see fleetctl docs playbooks"
        return FleetError(placed.line(str(self.file)), hint=hint, exit_code=Exit.USAGE)


def read_playbook(name: str, project: Path) -> list[Entry]:
    """The project's own playbook of that name, or the one that comes with fleetctl."""
    entries = [
        entry if entry.name else replace(entry, name=f"{entry.kind} {at}")
        for at, entry in enumerate(_entries(f"{name}.yaml", project, ()), 1)
    ]
    for said, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            what = f"two steps of the playbook {name} are called {said!r}"
            raise FleetError(what, hint="give each a name of its own", exit_code=Exit.USAGE)
    return entries


def _entries(name: str, project: Path, above: tuple[Path, ...]) -> Iterator[Entry]:
    """A project's playbook that imports its own name means the one that comes with fleetctl."""
    places = [folder / name for folder in (project / "playbooks", packaged.folder("playbooks"))]
    file = next((each for each in places if each.is_file() and each not in above), None)
    if file is None:
        what = "imports itself" if set(places) & set(above) else "is not there"
        raise FleetError(f"the playbook {name} {what}", exit_code=Exit.USAGE)
    data = file.read_bytes()
    read = document.read(data, str(file))
    root = read.value if isinstance(read.value, dict) else {}
    steps = root.get("steps")
    if read.problems or set(root) != {"steps"} or not isinstance(steps, list):
        problems = read.problems or [Problem((), "has no list of 'steps', or more than that")]
        raise InvalidFile(str(file), document.located(problems, data))
    problems = []
    for at, value in enumerate(steps):
        entry = _entry(value, file, at, problems)
        if isinstance(entry, str):
            yield from _entries(entry, project, (*above, file))
        elif entry is not None:
            yield entry
    if problems:
        raise InvalidFile(str(file), document.located(problems, data))


def _entry(value: Value, file: Path, at: int, problems: list[Problem]) -> Entry | str | None:
    """A step, or the name of another playbook, or nothing and a problem."""
    where = ("steps", at)
    said = value if isinstance(value, dict) else {}
    kinds = [key for key in said if key not in ("name", "os", "when")]
    if len(kinds) != 1 or kinds[0] not in (*KINDS, "import"):
        hint = did_you_mean(kinds[0] if kinds else "", (*KINDS, "import"))
        problems.append(Problem(where, "must have exactly one kind of step", hint))
        return None
    kind, arguments = kinds[0], said[kinds[0]]
    if kind == "import":
        if len(said) > 1:
            problems.append(Problem(where, "imports a playbook, which `os` and `when` do not gate"))
        return str(arguments)
    system = said.get("os")
    if system is not None and system not in _SYSTEMS:
        problems.append(Problem((*where, "os"), f"is {system!r}", "it must be linux or macos"))
    try:
        step = KINDS[kind].model_validate(arguments if arguments is not None else {})
    except ValidationError as error:
        for problem in validation_problems(error, arguments, KINDS[kind]):
            problems.append(Problem((*where, kind, *problem.where), problem.what, problem.hint))
        return None
    name, when = str(said.get("name") or ""), said.get("when")
    if not name.isprintable():
        problems.append(Problem((*where, "name"), f"is {name!r}", "it must be one line of text"))
    return Entry(
        name=name,
        kind=kind,
        step=step,
        file=file,
        at=at,
        system=_SYSTEMS.get(str(system)),
        when=None if when is None else str(when).lower() if isinstance(when, bool) else str(when),
    )
