"""What tests share: the command line as a user runs it, and folders of cases."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.fleet_fixtures import Project

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "cases"
_SECONDS = 180

# What is ignored where the tests were started (by nohup, or a shell's `&`) is for them to decide.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def exits(self, code: int) -> Outcome:
        assert self.code == code, f"exit {self.code}, not {code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class FleetctlIn:
    """`fleetctl(…)` in a folder of its own, with an environment of its own."""

    folder: Path

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
        return finished(self.start("fleetctl", *arguments, env=env))

    def start(
        self, module: str, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env={**clean_environment(self.folder), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def write(self, text: str, name: str = "fleet.yaml") -> Path:
        file = self.folder / name
        file.write_text(text)
        return file


def finished(process: subprocess.Popen[str]) -> Outcome:
    with process:
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except BaseException:
            process.kill()
            raise
    return Outcome(process.returncode, out, err)


def clean_environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


def needs_shell(name: str) -> None:
    """Skips without that shell, unless all shells are required here."""
    if shutil.which(name) is None:
        assert not os.environ.get("FLEETCTL_ALL_SHELLS"), f"{name} is not installed"
        pytest.skip(f"{name} is not installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Simulated machines are made of what Linux has in /proc."""
    if sys.platform == "linux":
        return
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "sim" in item.path.parts or fixtures & {"fleet", "project"}:
            item.add_marker(pytest.mark.skip("simulated machines need Linux"))


@pytest.fixture
def fleetctl(tmp_path: Path) -> FleetctlIn:
    return FleetctlIn(tmp_path)


@pytest.fixture
def project() -> Iterator[Project]:
    """A project of simulated machines, none of them yet; nothing unknown may be asked of them."""
    from tests.fleet_fixtures import simulated_project

    with simulated_project() as project:
        yield project
