"""Many simulated machines: fast start, isolation, no leftovers."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fleetsim.fleet import Fleet
from tests.sim.remote import alive, connect, eventually, execute, until_answering


def test_bare_machine_has_no_ollama(fleet: Fleet) -> None:
    machine = fleet.linux("bare", ollama="absent")
    with connect(machine) as client:
        assert execute(client, "command -v ollama").code != 0
        assert execute(client, "systemctl --user show -p LoadState --value ollama").out == (
            "not-found\n"
        )


def test_installed_machine_has_a_program_and_no_unit(fleet: Fleet) -> None:
    machine = fleet.linux("fresh", ollama="installed")
    with connect(machine) as client:
        out = execute(client, "ollama --version").out
    assert out == (
        "Warning: could not connect to a running Ollama instance\n"
        "Warning: client version is 0.24.0\n"
    )


def test_machines_are_isolated_from_each_other(fleet: Fleet) -> None:
    one, two = fleet.linux("one", models=["tiny"]), fleet.linux("two")
    until_answering(one, two)
    models = [
        len(httpx.get(f"{machine.endpoint}/api/tags", trust_env=False).json()["models"])
        for machine in (one, two)
    ]
    assert models == [1, 0]
    assert len({one.host_key, two.host_key}) == 2
    assert not set(one.processes()) & set(two.processes())


def test_processes_of_the_host_are_invisible_on_a_machine(fleet: Fleet, tmp_path: Path) -> None:
    own = tmp_path / "ollama"
    shutil.copy("/bin/sh", own)
    look = (
        "for at in /proc/[0-9]*; do read -r name <$at/comm && echo $name; done; cat /proc/net/tcp"
    )
    with subprocess.Popen([own, "-c", "read x", "serve"], stdin=subprocess.PIPE):
        for machine in (fleet.linux("box"), fleet.mac("mini")):
            with connect(machine) as client:
                assert execute(client, look).out == ""


def test_stopped_machine_can_be_started_again(fleet: Fleet) -> None:
    machine = fleet.linux("workstation")
    until_answering(machine)
    pids = machine.processes()
    machine.stop()
    assert pids
    assert not any(alive(pid) for pid in pids)
    with pytest.raises(ConnectionRefusedError):
        connect(machine)
    machine.start()
    until_answering(machine)


@pytest.mark.parametrize("kind", ["linux", "mac"])
def test_servers_end_when_the_process_that_runs_the_machines_is_killed(
    fleet: Fleet, kind: str
) -> None:
    script = (
        "import sys, time; from pathlib import Path; from fleetsim.fleet import Fleet\n"
        "fleet = Fleet(Path(sys.argv[1])); m = fleet.KIND('workstation')\n"
        "from urllib.request import urlopen\n"
        "while True:\n"
        "    try: urlopen(m.endpoint); break\n"
        "    except OSError: time.sleep(0.01)\n"
        "print(*m.processes(), flush=True); time.sleep(600)"
    )
    source = str(Path(__file__).parents[2] / "src")
    killed = subprocess.Popen(
        [sys.executable, "-c", script.replace("KIND", kind), str(fleet.folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert killed.stdout is not None
    orphans = [int(pid) for pid in killed.stdout.readline().split()]
    assert orphans
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    eventually(lambda: not any(alive(pid) for pid in orphans))


def test_start_ends_processes_left_by_a_killed_machine(fleet: Fleet) -> None:
    machine = fleet.linux("workstation")
    machine.stop()
    environment = {"XDG_RUNTIME_DIR": f"{machine.folder}/run"}
    with subprocess.Popen(["/bin/sleep", "600"], env=environment) as left:
        machine.start()
        assert left.wait(timeout=5) == -signal.SIGTERM


def test_twenty_machines_at_once(fleet: Fleet) -> None:
    machines = [fleet.linux(f"node-{number}") for number in range(20)]
    for machine in machines:
        until_answering(machine)
        with connect(machine) as client:
            assert execute(client, "systemctl --user is-active ollama").out == "active\n"
