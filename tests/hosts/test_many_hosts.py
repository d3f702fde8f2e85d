"""Fault 69: many hosts, a quarter of them dead in every way that there is."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import rig

from tests.conftest import clean_environment

pytestmark = [pytest.mark.host, pytest.mark.slow]

LIVING, SILENT, HOLES, REFUSING = 150, 20, 20, 10
TIMEOUT = 15


@contextmanager
def dead_ports() -> Iterator[list[int]]:
    """Some take connections and say nothing, some do not even answer, some refuse."""
    with ExitStack() as opened:
        silent = [listening(opened, backlog=1) for _ in range(SILENT)]
        holes = [listening(opened, backlog=0) for _ in range(HOLES)]
        for port in holes * 4:
            filling = opened.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(("127.0.0.1", port))
        yield [*silent, *holes, *range(1, REFUSING + 1)]


def listening(opened: ExitStack, backlog: int) -> int:
    listener = opened.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen(backlog)
    port: int = listener.getsockname()[1]
    return port


def with_the_dead_first(inventory: Path, ports: list[int]) -> None:
    dead = {
        f"dead-{at}": {"ssh": {"host": "127.0.0.1", "port": port}, "ollama": {"host": "::1"}}
        for at, port in enumerate(ports)
    }
    fleet: dict[str, Any] = json.loads(inventory.read_text())
    inventory.write_text(json.dumps({**fleet, "nodes": {**dead, **fleet["nodes"]}}))


def test_fault_69_a_quarter_of_200_hosts_is_dead(tmp_path: Path) -> None:
    with rig(LIVING, tmp_path, first_port=21000), dead_ports() as ports:
        with_the_dead_first(tmp_path / "fleet.yaml", ports)
        started = time.monotonic()
        with (tmp_path / "out").open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "fleetctl", "check", "--json", "--timeout", str(TIMEOUT)],
                cwd=tmp_path,
                env=clean_environment(tmp_path),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )
        most_open: list[int] = [0]
        watcher = threading.Thread(target=watch, args=(process.pid, most_open))
        watcher.start()
        assert process.stderr is not None
        told = list(process.stderr)  # as it happens
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
    assert time.monotonic() - started <= 60
    assert process.returncode == 4, told[-5:]
    document = json.loads((tmp_path / "out").read_text())
    states = [node["state"] for node in document["nodes"].values()]
    assert states.count("unreachable") == SILENT + HOLES + REFUSING
    assert len(states) == LIVING + SILENT + HOLES + REFUSING
    assert 0 < most_open[0] <= 1024
    assert usage.ru_maxrss <= 300 * 1024
    # Nobody waited for the dead: those who needed their whole time-out are the last to be told of.
    last = [line.partition(":")[0] for line in told if ": unreachable" in line][-SILENT - HOLES :]
    answered = max(at for at, line in enumerate(told) if line.startswith("node-"))
    given_up = min(at for at, line in enumerate(told) if line.partition(":")[0] in last)
    assert answered < given_up


def watch(pid: int, most_open: list[int]) -> None:
    while True:
        try:
            most_open[0] = max(most_open[0], len(list(Path(f"/proc/{pid}/fd").iterdir())))
        except OSError:  # it has ended
            return
        time.sleep(0.05)
