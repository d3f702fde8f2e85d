"""What is drawn on a terminal, and that nothing is drawn, and rich not imported, anywhere else."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetctl import ui
from fleetctl.errors import Exit
from tests.conftest import ROOT, FleetctlIn, Outcome, clean_environment
from tests.drawing import NAMES
from tests.fleet_fixtures import Project
from tests.terminal import Meanwhile, on_terminal, screen

SHOWN = r"[red]x[/] :smile: [link=https://evil.example]y[/link] \x1b[2J"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
FRAME = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*|\x1b\[\?25[lh]")
"""What stands before and after each drawing of the display."""

INVENTORY = """
groups: {minis: {}}
nodes: {mini: {groups: [minis]}, box: {ssh: {host: box.local}, tags: [TAGS]}}
models: {coder: {node: mini, ollama_model: "qwen3"}}
agents: {planner: {model: coder, description: Plans.}}
"""


def drawn(scene: str, columns: int = 80, rows: int = 24, answer: str = "", **env: str) -> Outcome:
    whole = {**clean_environment(ROOT), "TERM": "xterm", **env}
    answers = {"Trust this key?": answer} if answer else {}
    return on_terminal(
        "tests.drawing", scene, folder=ROOT, env=whole, answers=answers, size=(rows, columns)
    )


def piped(*arguments: str, env: dict[str, str] | None = None) -> Outcome:
    return Outcome(
        (done := subprocess.run(
            [sys.executable, "-m", "tests.drawing", *arguments],
            cwd=ROOT, env={**clean_environment(ROOT), **(env or {})},
            capture_output=True, text=True, timeout=60,
        )).returncode, done.stdout, done.stderr,
    )  # fmt: skip


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def frames(shown: str) -> list[list[str]]:
    """Each picture of the live display, as lines."""
    return [plain(frame).split("\n") for frame in FRAME.split(shown)]


def test_the_display_shows_busy_nodes_and_how_far_transfers_are() -> None:
    pictures = frames(drawn("ends", columns=120).exits(0).err)
    facts = "gathering facts from mini, studio, [red]x[/] and 4 more"
    assert [f"{facts} {'━' * 20} 0/7 nodes"] in pictures
    lines = next(picture for picture in pictures if "pull qwen3" in picture[0])
    assert re.fullmatch(r"mini: pull qwen3:latest +━+[╸╺]━+ +1\.2/4\.7 GB *", lines[0])
    assert re.fullmatch(r"studio: upload \[red\]x\[/\] :smile: .* [━╸╺]+ +3/12 files *", lines[1])
    assert lines[2].rstrip() == "[red]x[/]: restarting Ollama"
    assert lines[5].rstrip() == "and 2 more"
    assert len(lines) == 6


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 200])
def test_nothing_of_the_display_remains_and_every_line_is_whole(columns: int) -> None:
    shown = drawn("ends", columns=columns).exits(0).err
    lines = [plain(line) for line in screen(shown)]
    assert lines == [
        f"mini: failed: {SHOWN}",
        f"  hint: {SHOWN}",
        f"mini: done: {SHOWN}",
        f"studio: {SHOWN}",
        "a warning from elsewhere",
        *(f"{name}: changed" for name in NAMES),
    ]
    for picture in frames(shown):
        assert all(len(line) <= columns for line in picture if "gathering" in line)


def test_the_display_fits_a_terminal_of_few_lines() -> None:
    for picture in frames(drawn("ends", rows=4).exits(0).err):
        if picture[0].startswith("mini: pull"):
            assert [line.rstrip() for line in picture[2:]] == ["and 5 more"]
            break
    else:
        pytest.fail("the display was never drawn")


def test_a_question_has_the_terminal_for_itself() -> None:
    shown = drawn("asks", answer="yes").exits(0).err
    before, question = shown.split("Trust this key?")
    assert before.rstrip().endswith("\x1b[1A\x1b[2K"), "the display is gone"
    assert before.count(HIDE) == before.count(SHOW)
    assert question.startswith(f": yes\n{HIDE}gathering facts")
    assert screen(shown) == ["Trust this key?: yes", "mini: the answer was yes"]


@pytest.mark.parametrize(("scene", "code"), [("ends", 0), ("asks", 0), ("fails", 130)])
def test_the_cursor_is_always_given_back(scene: str, code: int) -> None:
    shown = drawn(scene, answer="yes").exits(code).err
    assert shown.count(HIDE) == shown.count(SHOW) > 0
    assert shown.rindex(SHOW) > shown.rindex(HIDE)


def test_colour_is_left_out_on_request_and_the_display_is_not() -> None:
    shown = drawn("ends", NO_COLOR="1").exits(0).err
    assert "1.2/4.7 GB" in shown
    assert not re.search(r"\x1b\[[\d;]*m", shown)
    assert "\x1b[" in drawn("ends", TERM="xterm").err


def test_a_dumb_terminal_gets_lines_only() -> None:
    shown = drawn("ends", TERM="dumb").exits(0).err
    assert "\x1b" not in shown
    assert "mini: unreachable\n" in shown
    assert "gathering" not in shown


def test_a_table_wraps_in_its_column_on_a_terminal_and_nowhere_else() -> None:
    lines = screen(drawn("table", columns=40).exits(0).err)
    assert lines[0].startswith("  key   [red]x[/] :smile:")
    assert max(map(len, lines)) <= 40
    words = [line for line in lines if "word" in line]
    assert len(words) > 1
    assert all(line.startswith("        word") for line in words[1:])
    assert "".join(line[8:] for line in lines if "/x" in line) == "/x" * 50, "nothing is cut off"
    out = piped("table", env={"COLUMNS": "40"}).exits(0).out.splitlines()
    long = ("word " * 30).rstrip()
    assert out == [f"  key   {SHOWN}", f"  long  {long}", f"  path  {'/x' * 50}"]


def test_a_tree_is_the_same_text_wherever_it_goes() -> None:
    on_a_wide_one = screen(drawn("tree", columns=300).exits(0).err)
    assert on_a_wide_one[1] == f"├── {SHOWN}"
    assert on_a_wide_one[2].startswith("│   └── long long")
    out = piped("tree", env={"COLUMNS": "40"}).exits(0).out.splitlines()
    assert out[1] == f"├─ {SHOWN}"
    assert out[3] == "└─ " + ("long " * 30).rstrip()


@pytest.mark.parametrize("options", [[], ["--json"], ["--json-events"]])
def test_without_a_terminal_a_run_does_not_import_rich(options: list[str]) -> None:
    outcome = piped("ends", *options).exits(0)
    assert "rich was imported" not in outcome.out
    assert "\x1b" not in outcome.out + outcome.err
    if "--json-events" in options:
        events = [json.loads(line) for line in outcome.out.splitlines()]
        assert {"event": "progress", "target": "mini", "what": "pull qwen3:latest", "format": 1,
                "done": 1_200_000_000, "total": 4_700_000_000, "unit": "B"} in events  # fmt: skip


WITHOUT_RICH = """
import sys
from fleetctl.cli import cli, guard
code = guard.run(cli, sys.argv[1:])
sys.exit(code or ("rich" in sys.modules and "rich was imported"))
"""


@pytest.mark.parametrize(
    "command",
    ["--help", "inventory", "inventory --graph", "inventory --json", "docs", "docs exit-codes",
     "docs nodes --json", "validate --json", "completion zsh", "schema"],
)  # fmt: skip
def test_what_is_piped_does_not_import_rich(command: str, fleetctl: FleetctlIn) -> None:
    tags = ", ".join(f"tag-{number}" for number in range(40))
    fleetctl.write(INVENTORY.replace("TAGS", tags))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RICH, *command.split()],
        cwd=fleetctl.folder,
        env={**clean_environment(fleetctl.folder), "TERM": "xterm", "COLUMNS": "40"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    if command == "inventory":
        assert tags.replace(",", "") in done.stdout, "never wrapped"


def test_an_inventory_on_a_terminal_fits_it(fleetctl: FleetctlIn) -> None:
    fleetctl.write(INVENTORY.replace("TAGS", ", ".join(f"tag-{number}" for number in range(40))))
    env = {**clean_environment(fleetctl.folder), "TERM": "xterm", "PAGER": "cat"}
    for command in ("inventory", "inventory --graph", "docs", "docs exit-codes"):
        shown = on_terminal("fleetctl", *command.split(), folder=fleetctl.folder, env=env)
        lines = [plain(line) for line in shown.exits(0).err.splitlines()]
        sections = "sections of the inventory"
        assert all(len(line) <= 80 for line in lines if sections not in line), command


@pytest.mark.parametrize(
    ("env", "escapes"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"LESS": "-M"}, False), ({"PAGER": "cat"}, False)],
    ids=str,
)
def test_a_page_is_coloured_only_if_the_pager_shows_colours(
    env: dict[str, str], escapes: bool, fleetctl: FleetctlIn
) -> None:
    less = fleetctl.write('#!/bin/sh\necho "LESS=$LESS"; exec cat\n', "less")
    less.chmod(0o755)
    usual = clean_environment(fleetctl.folder)
    whole = {**usual, "PATH": f"{fleetctl.folder}:{usual['PATH']}", "TERM": "xterm", **env}
    shown = on_terminal("fleetctl", "docs", "exit-codes", folder=fleetctl.folder, env=whole)
    assert ("\x1b[" in shown.exits(0).err) == escapes
    assert ("LESS=-R\n" in shown.err) == (not {"LESS", "PAGER"} & set(env))
    assert "in the desired state" in shown.err


def test_a_check_that_is_piped_does_not_import_rich(project: Project) -> None:
    project.nodes["dead"] = {"ssh": {"host": "127.0.0.1", "port": 1}, "ollama": {"host": "::1"}}
    project.write()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RICH.replace("code or", "code != 4 or"), "check"],
        cwd=project.fleetctl.folder,
        env=clean_environment(project.fleetctl.folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "dead: unreachable" in done.stderr


def at_a_terminal(project: Project, meanwhile: Meanwhile | None = None) -> Outcome:
    folder = project.fleetctl.folder
    env = {**clean_environment(folder), "TERM": "xterm"}
    answers = {} if meanwhile else {"Is it right?": "yes"}
    command = ("fleetctl", "check", "--only", "wait_http")
    return on_terminal(*command, folder=folder, env=env, answers=answers, meanwhile=meanwhile)


def test_a_host_key_is_shown_whole_and_asked_about(project: Project) -> None:
    machines = [project.add(name, trusted=False) for name in ("box", "other")]
    shown = at_a_terminal(project).exits(0).err
    for machine in machines:
        assert f"{machine.fingerprint}. Is it right?" in plain("".join(screen(shown)))
    assert shown.count(HIDE) == shown.count(SHOW) > 0


def test_an_interrupted_question_leaves_the_terminal_as_it_was(project: Project) -> None:
    def interrupt(_: int, process: subprocess.Popen[bytes]) -> None:
        time.sleep(2)
        process.send_signal(signal.SIGINT)

    project.add("box", trusted=False)
    shown = at_a_terminal(project, interrupt).exits(130).err
    assert "Is it right?" in shown
    assert shown.count(HIDE) == shown.count(SHOW) > 0


def test_a_terminal_that_goes_away_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

        def flush(self) -> None:
            raise OSError(5, "Input/output error")

    from fleetctl.model.events import Doing, Noted

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Gone())
    with ui.RunListener(["mini"]) as tell:
        tell(Doing("mini", "restarting Ollama"))
        tell(Noted("mini", "still here"))


def test_the_public_names_are_there() -> None:
    program = "import fleetctl.ui as ui\nfrom fleetctl.ui import *\nprint(*ui.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ui.__all__, done.stderr
    with pytest.raises(AttributeError):
        _ = ui.nonsense


def test_no_file_of_the_ui_imports_rich_at_its_top_but_the_display() -> None:
    for file in (ROOT / "src/fleetctl/ui").glob("*.py"):
        top = [
            line for line in file.read_text().splitlines() if re.match(r"(from|import) rich", line)
        ]
        assert not top or file.name == "progress.py", file


def test_the_exit_code_of_a_full_stdout_is_the_same_for_drawings(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tests.drawing", "ends"],
            cwd=ROOT, env=clean_environment(tmp_path), stdout=full, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == Exit.FAILED
    assert os.linesep.encode() in done.stderr
