"""Playbooks: YAML files that list steps. The built-in ones are everything that fleetctl does."""

from collections import Counter
from collections.abc import Iterator
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
from fleetctl.model.facts import Answers, Facts
from fleetctl.model.fleet import Fleet, Target
from fleetctl.render import evaluate
from fleetctl.shell import SYSTEMS, Os, Question
from fleetctl.steps import Place, Step, kinds

_GATES = ("name", "os", "when", "on")
"""The keys of a step beside its kind."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A step in a playbook, and when it applies."""

    name: str
    kind: str
    step: Step
    file: Path
    at: int
    """Its index in the list of that file."""
    place: Place = "nodes"
    os: Os | None = None
    when: str | None = None
    number: int = 0
    """Its index in the whole playbook, by which its answers are found."""

    def questions(self, target: Target) -> list[Question]:
        if not self._is_for(target):
            return []
        return [
            replace(question, key=f"{self.number} {question.key}", os=self.os or question.os)
            for question in self.step.questions(target)
        ]

    def own(self, answers: Answers) -> Answers:
        """The answers to this step's questions, by its own keys."""
        mine = f"{self.number} "
        return {
            key.removeprefix(mine): answer
            for key, answer in answers.items()
            if key.startswith(mine)
        }

    def applies(self, fleet: Fleet, target: Target, facts: Facts) -> bool:
        if not self._is_for(target) or (self.os and SYSTEMS[self.os] != facts.host.system):
            return False
        if self.when is None:
            return True
        try:
            return bool(evaluate(self.when, {"node": target.node, "fleet": fleet, "facts": facts}))
        except Exception as error:  # an expression can fail in any way
            what = f"cannot be evaluated: {error or type(error).__name__}"
            raise self._wrong(Problem(("steps", self.at, "when"), what)) from None

    def _is_for(self, target: Target) -> bool:
        return (target.node is None) == (self.place == "controller")

    def _wrong(self, problem: Problem) -> FleetError:
        (placed,) = document.located([problem], self.file.read_bytes())
        hint = "`when` is one expression over node, fleet and facts; see fleetctl docs playbooks"
        return FleetError(placed.line(str(self.file)), hint=hint, exit_code=Exit.USAGE)


def read_playbook(name: str, project: Path) -> list[Entry]:
    """The project's own playbook of that name, or the one that comes with fleetctl."""
    entries = [
        replace(entry, name=entry.name or f"{entry.kind} {number}", number=number)
        for number, entry in enumerate(_entries(f"{name}.yaml", project, ()), 1)
    ]
    for called, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            what = f"two steps of the playbook {name} are called {called!r}"
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
    given = value if isinstance(value, dict) else {}
    found = [key for key in given if key not in _GATES]
    known = kinds()
    if len(found) != 1 or found[0] not in (*known, "import"):
        hint = did_you_mean(found[0] if found else "", (*known, "import"))
        problems.append(Problem(where, "must have exactly one kind of step", hint))
        return None
    kind, arguments = found[0], given[found[0]]
    if kind == "import":
        if len(given) > 1:
            problems.append(Problem(where, "imports a playbook, which `os` and `when` do not gate"))
        return str(arguments)
    try:
        step = known[kind].model_validate(arguments if arguments is not None else {})
    except ValidationError as error:
        for problem in validation_problems(error, arguments, known[kind]):
            problems.append(Problem((*where, kind, *problem.where), problem.what, problem.hint))
        return None
    return _gated(Entry("", kind, step, file, at), given, problems)


def _gated(entry: Entry, given: dict[str, Value], problems: list[Problem]) -> Entry:
    """With its name, and with what decides where and when it applies."""
    where = ("steps", entry.at)
    name, when, os = str(given.get("name") or ""), given.get("when"), given.get("os")
    if not name.isprintable():
        problems.append(Problem((*where, "name"), f"is {name!r}", "it must be one line of text"))
    if os not in (None, *SYSTEMS):
        problems.append(Problem((*where, "os"), f"is {os!r}", "it must be linux or macos"))
    place: Place = "controller" if given.get("on") == "controller" else "nodes"
    if given.get("on") not in (None, *entry.step.places):
        allowed = f"it must be {' or '.join(sorted(entry.step.places))} for this kind of step"
        problems.append(Problem((*where, "on"), f"is {given['on']!r}", allowed))
    elif refusal := entry.step.refusal(place):
        problems.append(Problem((*where, entry.kind), refusal))
    text = str(when).lower() if isinstance(when, bool) else str(when)
    return replace(
        entry,
        name=name,
        place=place,
        os=next((known for known in SYSTEMS if known == os), None),
        when=None if when is None else text,
    )
