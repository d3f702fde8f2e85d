"""The log of a run, where it can be written, and where it cannot."""

from __future__ import annotations

import errno
import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from fleetctl.ui import open_log
from tests.fleet_fixtures import Project


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[logging.Logger]]:
    """Who writes to a log until the end of the test."""
    loggers = [logging.getLogger(name) for name in ("fleetctl", "paramiko")]
    for logger in loggers:
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", logger.propagate)
        monkeypatch.setattr(logger, "level", logger.level)
    yield loggers
    for handler in writers(loggers[0]):
        handler.stream.close()


def writers(logger: logging.Logger) -> list[logging.StreamHandler[TextIO]]:
    """Those with a file; pytest may have added its own, with none."""
    handlers = [each for each in logger.handlers if isinstance(each, logging.StreamHandler)]
    return [each for each in handlers if isinstance(each.stream, io.TextIOWrapper)]


def test_whatever_can_be_said_can_be_logged(tmp_path: Path, loggers: list[logging.Logger]) -> None:
    log = open_log(tmp_path, "check")
    for logger in loggers:
        logger.debug("5m → -1 (forever)")
    assert [line[-17:] for line in log.read_text("utf-8").splitlines()] == ["5m → -1 (forever)"] * 2
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_ends_the_log_and_is_said_once(
    tmp_path: Path, loggers: list[logging.Logger], capsys: pytest.CaptureFixture[str]
) -> None:
    open_log(tmp_path, "check")
    (writer,) = writers(loggers[0])
    writer.stream.close()
    writer.stream = Full()
    for logger in (*loggers, *loggers):
        logger.debug("anything")
    full = "[Errno 28] No space left on device"
    assert capsys.readouterr().err == f"warning: the log of this run is incomplete: {full}\n"


def test_the_oldest_logs_go(tmp_path: Path, loggers: list[logging.Logger]) -> None:
    log = open_log(tmp_path, "check")
    for number in range(30):
        (log.parent / f"2020{number:04}.log").touch()
    (log.parent / "20190101-in-the-way.log").mkdir()
    newest = open_log(tmp_path, "apply")
    left = sorted(path.name for path in log.parent.iterdir() if path.is_file())
    assert len(left) == 20
    assert left[-2:] == [log.name, newest.name]


def test_a_project_that_cannot_be_written_to_can_be_looked_at(project: Project) -> None:
    project.nodes["dead"] = {"ssh": {"host": "127.0.0.1", "port": 1}, "ollama": {"host": "::1"}}
    project.write()
    (project.fleetctl.folder / ".fleetctl").mkdir()
    project.fleetctl.write("", ".fleetctl/logs")
    outcome = project.fleetctl("check").exits(4)
    assert "dead: failed: 127.0.0.1:1 refused the connection" in outcome.out
    said = "warning: there is no log of this run: .fleetctl/logs: File exists\n"
    assert said in outcome.err
    assert "log: " not in outcome.err
    assert project.fleetctl("check", "--json").exits(4).json["log"] is None
