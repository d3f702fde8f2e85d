"""The demo, from its first command to its last; each exit code is checked by the demo itself."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import pytest

from fleetsim.demo import STEPS, make, place
from fleetsim.processes import processes_with
from tests.conftest import FleetctlIn, finished


@pytest.fixture
def folder() -> Iterator[Path]:
    # not tmp_path: as root the machines run as nobody, who may not enter pytest's folders
    folder = Path(mkdtemp(prefix="fleetctl-demo-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
def test_the_demo_runs_to_its_end_can_be_kept_and_cleans_up(folder: Path) -> None:
    fleetctl = FleetctlIn(folder)
    demo = fleetctl.start("fleetctl", "demo", "--keep", "--json")
    assert demo.stderr is not None
    shown = "".join(iter(demo.stderr.readline, f"  cd {folder / 'fleetctl-demo'}\n"))
    there = FleetctlIn(folder / "fleetctl-demo")
    for _ in range(3):
        command = shlex.split(demo.stderr.readline())[1:]
        there(*command).exits(0)
    demo.send_signal(signal.SIGINT)
    outcome = finished(demo).exits(0)
    look_at(shown, folder / "fleetctl-demo")
    played = {step["command"]: step["exit_code"] for step in outcome.json["steps"]}
    assert {step.command: step.code for step in STEPS}.items() <= played.items()
    fleetctl("demo", "--clean").exits(0)
    assert not (folder / "fleetctl-demo").exists()


@pytest.mark.slow
@pytest.mark.ollama
def test_the_demo_runs_with_the_real_server(folder: Path) -> None:
    server = os.environ.get("FLEETCTL_REAL_OLLAMA")
    if not server:
        pytest.skip("FLEETCTL_REAL_OLLAMA does not name it")
    shutil.copy(server, folder / "ollama")
    path = f"{folder}:{os.environ['PATH']}"
    outcome = FleetctlIn(folder)("demo", "--real-ollama", env={"PATH": path}).exits(0)
    look_at(outcome.err + outcome.out, folder / "fleetctl-demo")
    log = folder / "fleetctl-demo/machines/studio/home/.ollama/logs/fleetctl-server.log"
    assert "gin" in log.read_text().lower(), "the simulated server has no such lines"


def look_at(shown: str, demo: Path) -> None:
    """What was said, and what is left of it all."""
    for step in STEPS:
        assert f"$ fleetctl {step.command}" in shown
    assert "studio: rolled back: Ollama crashed" in shown
    assert "3 nodes: 2 ok, 1 rolled back" in shown
    assert "models_dir" not in (demo / "fleet.yaml").read_text()
    homes = {name: demo / "machines" / name / "home" for name in ("workstation", "studio", "mini")}
    settings = (homes["workstation"] / ".config/fleetctl/ollama.env").read_text()
    assert 'OLLAMA_KEEP_ALIVE="24h0m0s"' in settings
    job = homes["studio"] / "Library/LaunchAgents/dev.fleetctl.ollama.plist"
    environment = plistlib.loads(job.read_bytes())["EnvironmentVariables"]
    assert environment["OLLAMA_KEEP_ALIVE"] == "24h0m0s"
    assert "OLLAMA_MODELS" not in environment
    for home in homes.values():
        assert (home.parent / "refused.log").read_text() == ""
        assert not list(processes_with({"HOME": str(home)})), "processes are left"


def test_a_folder_with_something_else_in_it_is_left_alone(folder: Path) -> None:
    fleetctl = FleetctlIn(folder)
    precious = folder / "fleetctl-demo/machines/mine"
    precious.mkdir(parents=True)
    for command in (["demo"], ["demo", "--clean"]):
        assert "is not a folder of the demo" in fleetctl(*command).exits(2).err
    assert precious.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs the machines as somebody else")
def test_a_folder_that_nobody_may_enter_is_replaced(folder: Path) -> None:
    (folder / "private").mkdir(mode=0o700)
    (folder / "open").mkdir()
    assert place(folder / "open/demo") == folder / "open/demo"
    assert place(folder / "private/deeper/demo") == Path(gettempdir()) / "demo"


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs the machines as somebody else")
def test_where_nobody_may_enter_anywhere_the_demo_says_so_and_leaves_nothing(folder: Path) -> None:
    private = folder / "private"
    private.mkdir(mode=0o700)
    for own in ([], ["--folder", str(private / "demo")]):
        outcome = FleetctlIn(private)("demo", *own, env={"TMPDIR": str(private)}).exits(2)
        assert f"is for root alone, and so is {private}\n" in outcome.err
        assert "name a folder that others may enter, with --folder or TMPDIR" in outcome.err
    assert not list(private.iterdir())


def test_others_may_enter_the_folder_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        make(folder / "deeper" / "demo")
        assert (folder / "deeper/demo").stat().st_mode & 0o777 == 0o755
        assert (folder / "deeper").stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)


def test_without_the_real_server_the_demo_says_so(fleetctl: FleetctlIn) -> None:
    outcome = fleetctl("demo", "--real-ollama", env={"PATH": "/nonexistent"})
    assert "there is no `ollama` in the PATH" in outcome.exits(2).err
