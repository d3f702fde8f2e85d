"""What README and docs say is true: links lead somewhere, examples work, messages are ours."""

from __future__ import annotations

import html
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest
import yaml

from fleetctl import audit
from fleetctl.inventory import load
from fleetctl.playbook import _GATES
from fleetctl.render import _CODECS
from fleetctl.steps import kinds
from fleetsim.demo import STEPS
from tests.conftest import ROOT, FleetctlIn, clean_environment
from tests.docs_reading import PAGES, anchors, commands, fenced, first_cells, links
from tests.fleet_fixtures import Project
from tests.inventory_page import inventory_page
from tests.sim.remote import until_answering
from tests.terminal import on_terminal
from tests.test_rooms import ROOMS

SOURCES = "\n".join(file.read_text() for file in (ROOT / "src" / "fleetctl").rglob("*.py"))
# a message that was too long for one line of code
SOURCES = re.sub(r'"\s*\n\s*f?"', "", SOURCES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith("http"):
            continue
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_wraps(page: Path) -> None:
    text = re.sub(r"^(\||!\[|- \[).*$", "", page.read_text(), flags=re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 105


@pytest.mark.parametrize(
    "message",
    [
        *first_cells(ROOT / "docs/troubleshooting.md"),
        *first_cells(ROOT / "docs/getting-started.md"),
    ],
)
def test_messages_in_the_docs_are_those_of_the_program(message: str) -> None:
    for piece in message.split("…"):
        assert piece.strip(" ;:,=()") in SOURCES


def test_every_page_can_be_found_from_the_readme() -> None:
    linked = links(ROOT / "README.md")
    assert [page.name for page in PAGES[2:] if f"docs/{page.name}" not in linked] == []


def test_inventories_in_the_docs_are_valid(fleetctl: FleetctlIn) -> None:
    (home_fleet,) = fenced(ROOT / "README.md", "yaml")
    fleet, warnings = load(fleetctl.write(home_fleet))
    assert len(fleet.nodes) == 4
    assert not warnings
    (models,) = fenced(ROOT / "docs/getting-started.md", "yaml")
    fleet, warnings = load(fleetctl.write(f"nodes: {{mini-64: {{}}}}\n{models}"))
    assert fleet.models
    assert not warnings


def test_the_reference_of_the_inventory_is_made_from_the_schema() -> None:
    page = ROOT / "docs" / "inventory-reference.md"
    assert page.read_text() == inventory_page(), "make docs"


def test_the_recording_shows_the_demo_as_it_is() -> None:
    recording = html.unescape((ROOT / "docs" / "demo.svg").read_text())
    for step in STEPS:
        assert step.about in recording, "make docs"
        assert f"$ fleetctl {step.command}" in recording, "make docs"


def test_the_architecture_is_true() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = re.findall(r"^    (\w+(?:/|\.py)) +\S", page, re.MULTILINE)
    there = [each for each in (ROOT / "src/fleetctl").iterdir() if each.name[0] not in "_."]
    rooms = {f"{each.name}/" if each.is_dir() else each.name for each in there}
    assert set(listed) == rooms - {"py.typed"}
    assert [name.rstrip("/").removesuffix(".py") for name in listed] == [
        room for room in ROOMS if f"{room}/" in rooms or f"{room}.py" in rooms
    ]
    for named in re.findall(r"`([\w/-]+\.(?:py|sh|yaml|md))`", page):
        assert list(ROOT.glob(f"**/{named}")), named
    described = re.findall(r"^\*\*(\S+)\*\*", page, re.MULTILINE)
    assert described == [*listed, "fleetsim"], "one paragraph a room, in the order of the tree"


def walk() -> list[tuple[str, str]]:
    """(function, file) of the walk through `check` and `apply`."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    _, _, section = page.partition("## A walk through")
    section, _, _ = section.partition("\n## ")
    entries = re.findall(r"^(\d+)\. `([\w.]+)` \(`([\w/]+\.py)`\):", section, re.MULTILINE)
    assert [int(number) for number, _, _ in entries] == list(range(1, len(entries) + 1))
    return [(function, file) for _, function, file in entries]


def test_the_walk_names_at_most_25_functions_that_exist() -> None:
    assert 15 <= len(walk()) <= 25
    for dotted, file in walk():
        module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
        assert dotted.startswith(f"{module}."), dotted
        found = import_module(f"fleetctl.{module}")
        for name in dotted.removeprefix(f"{module}.").split("."):
            found = getattr(found, name)
        callback = getattr(found, "callback", found)  # of a click command
        assert isinstance(callback, FunctionType), dotted
        defined = inspect.getsourcefile(inspect.unwrap(callback))
        assert defined == str(ROOT / "src/fleetctl" / file), dotted


TRACE = """
import sys, threading

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/fleetctl/" in code.co_filename:
        name = f"{code.co_filename.rpartition('/fleetctl/')[2]} {code.co_qualname}"
        if name not in seen:
            seen.add(name)
            trace.write(name + "\\n")
            trace.flush()

seen, trace = set(), open("trace", "w")
threading.setprofile(profile)
sys.setprofile(profile)
from fleetctl.cli import main
main()
"""


@pytest.mark.slow
def test_the_walk_is_in_the_order_of_the_calls(project: Project) -> None:
    """Traced on one node that gets files, a restart and a model."""
    project.fleetctl.write(TRACE, "traced.py")
    until_answering(project.add("box"))
    project.write(models={"m": {"node": "box", "ollama_model": "tiny"}})
    folder = project.fleetctl.folder
    environment = {**clean_environment(folder), "TERM": "xterm"}
    answers = {"Apply these changes": "y"}
    command = ("traced", "apply", "--limit", "box", "--settle", "0")
    on_terminal(*command, folder=folder, env=environment, answers=answers).exits(0)
    called = (folder / "trace").read_text().splitlines()
    expected = []
    for dotted, file in walk():
        module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
        expected.append(f"{file} {dotted.removeprefix(f'{module}.')}")
    assert [each for each in called if each in expected] == expected


def test_make_knows_every_target_in_the_docs() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    automatic = [("tests.yml", each) for step in steps if "make" in (each := step.get("run", ""))]
    for page, command in [*commands("make"), *automatic]:
        assert command.split()[1] in targets, f"{page}: {command}"


@pytest.mark.slow
def test_the_worked_example_of_the_playbooks_page(project: Project) -> None:
    """A playbook and a template of one's own, on a Linux machine and a Mac, and back again."""
    page = ROOT / "docs" / "playbooks.md"
    (playbook,), (template,) = fenced(page, "yaml"), fenced(page, "jinja")
    for file, text in (("playbooks/apply.yaml", playbook), ("templates/note.yaml", template)):
        (project.fleetctl.folder / file).parent.mkdir()
        project.fleetctl.write(text, file)
    box, mini = project.add("box"), project.add_mac("mini")
    project.write(models={"m": {"nodes": ["box", "mini"], "ollama_model": "tiny"}})
    until_answering(box, mini)
    project.fleetctl("validate").exits(0)
    out = project.fleetctl("check").exits(3).out
    assert "box, mini: write ~/fleet-note.yaml" in out
    assert "box: run: a folder for scratch files" in out
    project.fleetctl("apply", "--yes", "--settle", "0").exits(0)
    note = yaml.safe_load((mini.home / "fleet-note.yaml").read_text())
    assert note == {"node": "mini", "models": ["tiny:latest"]}
    assert (box.home / "scratch").is_dir()
    assert not (mini.home / "scratch").exists()
    project.fleetctl("check").exits(0)
    for name in ("box", "mini"):
        project.fleetctl("remove", name, "--yes").exits(0)
    assert not (box.home / "fleet-note.yaml").exists()
    assert (box.home / "scratch").is_dir()


def test_every_finding_has_a_row() -> None:
    page = (ROOT / "docs" / "findings.md").read_text()
    rows = re.findall(r"^\| ([A-Z]{2}\d{3}) \| (\w+) \| \S.* \| \S.* \|$", page, re.MULTILINE)
    levels = {code: check.level.name.lower() for code, check in audit.checks().items()}
    for code, level in re.findall(r'Finding\("(\w+)",\s*Level\.(\w+)', SOURCES):
        assert levels.setdefault(code, level.lower()) == level.lower(), f"{code} has two levels"
    assert len(rows) == len(dict(rows)), "a code has two rows"
    assert dict(rows) == levels
    named = re.findall(r'Finding\(\s*"', SOURCES)
    assert len(named) == len(re.findall(r'Finding\("\w+",\s*Level\.\w+', SOURCES))


def test_the_playbooks_page_lists_every_kind_gate_and_file_type() -> None:
    page = (ROOT / "docs" / "playbooks.md").read_text()
    rows = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
            for name in re.findall(r"`([^`]+)`", row)}  # fmt: skip
    own = {kind for kind, step in kinds().items() if step.__module__.startswith("fleetctl.")}
    assert {*own, *_GATES, *_CODECS} <= rows
    for kind in ("file", "command"):
        assert {*kinds()[kind].model_fields} <= rows
