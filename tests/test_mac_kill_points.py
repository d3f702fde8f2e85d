"""The kill loop on a simulated Mac: the same transaction, behind launchd."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetsim.mac.mac import Mac
from tests.conftest import ROOT, finished
from tests.disturbed import Disturbance
from tests.fleet_fixtures import Project
from tests.sim.remote import eventually, until_answering

pytestmark = pytest.mark.slow

QUICK = ("apply", "--yes", "--health-timeout", "16", "--settle", "0.2")
AGENT = "Library/LaunchAgents/dev.fleetctl.ollama.plist"
STATE = ".local/state/fleetctl"


class Trial:
    """A Mac that goes from one keep-alive to the other and back."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.mac: Mac = project.add_mac("mini", ollama="agent")
        self.texts = {hours: self._applied(hours) for hours in ("1h", "2h", "1h")}
        self.now = "1h"

    def _applied(self, hours: str) -> str:
        self.project.set("mini", keep_alive=hours)
        self.project.fleetctl(*QUICK).exits(0)
        return self.text

    @property
    def text(self) -> str:
        return (self.mac.home / AGENT).read_text()

    def records(self) -> list[str]:
        heard = Path(self.project.fleetctl.folder / "heard")
        self._disturbed(Disturbance(heard=str(heard)))
        self.project.fleetctl(*QUICK).exits(0)
        return heard.read_text().splitlines()

    def go(self, disturbance: Disturbance) -> int:
        code = self._disturbed(disturbance)
        eventually(lambda: not (self.mac.home / STATE / "lock").is_symlink() or code != -9, 30)
        until_answering(self.mac)
        assert self.text in self.texts.values()
        self.project.fleetctl(*QUICK).exits(0)
        assert self.text == self.texts[self.now]
        left = {path.name for path in (self.mac.home / STATE).iterdir()}
        assert left == {"backups", "log", "made", "origin"}
        return code

    def _disturbed(self, disturbance: Disturbance) -> int:
        self.now = "2h" if self.now == "1h" else "1h"
        self.project.set("mini", keep_alive=self.now)
        fleetctl, root = self.project.fleetctl, {"PYTHONPATH": str(ROOT)}
        return finished(fleetctl.start(*disturbance.arguments, *QUICK, env=root)).code


@pytest.mark.parametrize(
    ("counts", "disturbance"),
    [
        (lambda line: True, lambda at: Disturbance(at=at, what="SIGKILL")),
        (lambda line: line.startswith("step "), lambda at: Disturbance(step=at, does="kill -9 $$")),
    ],
    ids=["the controller", "the shell on the Mac"],
)
def test_killed_at_every_step_the_mac_serves_and_the_next_run_mends_it(
    counts: Callable[[str], bool],
    disturbance: Callable[[int], Disturbance],
    project: Project,
) -> None:
    trial = Trial(project)
    moments = [line for line in trial.records() if counts(line)]
    assert {"step verify", "step restart", "step commit"} <= set(moments)
    codes = [trial.go(disturbance(at)) for at in range(1, len(moments) + 1)]
    print(f"killed at each of {len(moments)} moments: {codes}")
    assert set(codes) <= {0, 5, -signal.SIGKILL}
