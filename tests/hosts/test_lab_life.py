"""What the lab leaves behind: nothing when it is stopped, and caches that are whole."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.docs_reading import commands
from tests.lab.__main__ import parse_arguments
from tests.lab.cache import cache_root, made, mounts_below
from tests.lab.cgroup import Cgroup
from tests.lab.command import run
from tests.lab.kinds import kind_named
from tests.lab.lab import Lab, free_slot, sweep

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[2]

CRASHING = """
from tests.lab.lab import session
with session() as lab:
    lab.boot("bare")
    print(lab.slot, flush=True)
    input()
"""


def test_the_docs_name_commands_and_kinds_that_there_are() -> None:
    told = [command for _, command in commands("python") if "tests.lab" in command]
    assert told
    for command in told:
        parse_arguments(command.split()[3:])
    (lab,) = [command for _, command in commands("make") if "KIND=" in command]
    kind_named(lab.partition("KIND=")[2])


def remains(slot: int) -> set[str]:
    """The traces of a lab on this machine, as the kernel tells."""
    lab = Lab(slot)
    bridge, (_, prefix), (_, prefix6) = lab.network.bridge, *lab.network.prefixes
    state = run("ip", "link") + run("ip", "netns")
    for family in ("-4", "-6"):
        state += run("ip", family, "rule") + run("ip", family, "route", "show", "table", "all")
    return {
        *(trace for trace in (bridge, prefix, prefix6) if re.search(rf"{trace}(?!\d)", state)),
        *map(str, mounts_below(lab.state)),
        *(f"process {pid}" for pid in processes_of(lab)),
        *(str(folder) for folder in Cgroup(bridge).folders if folder.exists()),
        *(["state"] if lab.state.exists() else []),
    }


def processes_of(lab: Lab) -> Iterator[int]:
    """Looked for by their command lines, not by the lab's own books."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            if re.search(rf"{lab.state}[/\0]", (process / "cmdline").read_text(errors="replace")):
                yield int(process.name)


def command(*arguments: str) -> str:
    return run(sys.executable, *arguments, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_up_prints_an_inventory_and_down_leaves_nothing() -> None:
    with free_slot() as slot:
        inventory = command("-m", "tests.lab", "--slot", str(slot), "up", "--nodes", "2")
        assert f'  lab-2: {{ssh: {{host: "10.97.{slot}.11", user: ada, ' in inventory
        said = command("-m", "tests.lab", "--slot", str(slot), "shell", "lab-2", "hostname")
        assert said == "lab-2\n"
        assert remains(slot)
        command("-m", "tests.lab", "--slot", str(slot), "down")
        assert remains(slot) == set()


def test_after_a_crash_the_next_start_clears_up_and_spares_the_living(lab: Lab) -> None:
    crashing = subprocess.Popen(
        [sys.executable, "-c", CRASHING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert crashing.stdout
    slot = int(crashing.stdout.readline())
    living = remains(lab.slot)
    crashing.send_signal(signal.SIGKILL)
    crashing.communicate()
    assert any(trace.startswith("process") for trace in remains(slot))
    sweep()
    assert remains(slot) == set()
    assert remains(lab.slot) == living


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_root()


def write(folder: Path) -> None:
    (folder / "file").write_text("whole")


def test_half_made_cache_is_made_anew(own_cache: Path) -> None:
    def break_off(folder: Path) -> None:
        (folder / "file").write_text("ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made("thing", "recipe", break_off)
    assert (made("thing", "recipe", write) / "file").read_text() == "whole"


def test_cache_is_kept_for_its_recipe_and_made_anew_without_its_stamp(own_cache: Path) -> None:
    content = made("thing", "recipe", write)
    (content / "extra").touch()
    assert not (made("thing", "another recipe", write) / "extra").exists()
    assert (made("thing", "recipe", write) / "extra").exists()
    (content.parent / "stamp").unlink()
    assert not (made("thing", "recipe", write) / "extra").exists()


def test_removing_a_half_made_cache_spares_what_is_mounted_in_it(
    own_cache: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    write(precious)

    def break_off(folder: Path) -> None:
        (folder / "proc").mkdir()
        run("mount", "--bind", precious, folder / "proc")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made("thing", "recipe", break_off)
    assert (made("thing", "recipe", write) / "file").exists()
    assert (precious / "file").exists()
    assert not mounts_below(own_cache)
