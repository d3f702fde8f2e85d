"""Faults of a node and of the controller while a node is changed, by their numbers."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.conftest import Outcome, finished
from tests.disturbed import Disturbance
from tests.hosts.managed import QUICK, Manage, Managed, Seen
from tests.hosts.test_rollback import fragile
from tests.lab.node import OLLAMA_PORT

pytestmark = [pytest.mark.host, pytest.mark.ollama]

SETTINGS = "/etc/fleetctl/ollama.env"
FOLDER = "/etc/fleetctl"


@pytest.fixture
def node(manage: Manage) -> Managed:
    """A node in state A that is to come to B."""
    managed = manage("installer")
    managed.want("A")
    managed.apply().exits(0)
    managed.want("B")
    return managed


def stays(managed: Managed, before: Seen) -> Outcome:
    """The run fails, and the node is as it was, not even restarted."""
    answered = managed.answers()
    outcome = managed.apply().exits(5)
    after = managed.seen()
    assert after == before
    assert after.run == before.run
    assert managed.answers() == answered
    return outcome


def test_fault_13_a_commit_whose_answer_is_lost_is_no_failure(node: Managed) -> None:
    lost = Disturbance(replace={'say committed "$number"\n': "kill -9 $$\n"})
    node.disturbed(lost).exits(0)
    assert len(node.seen().log) == 2
    assert "1 ok" in node.apply().exits(0).out


def test_fault_24_sudo_wants_a_password_and_nobody_is_there(manage: Manage) -> None:
    managed = manage("installer+sudo-password")
    outcome = stays(managed, managed.seen())
    assert "sudo did not let us in" in outcome.out
    assert "ada ALL=(root) NOPASSWD: ALL" in outcome.out
    assert managed.run(f"ls -d {FOLDER} /var/lib/fleetctl 2>/dev/null || true") == ""


@pytest.mark.parametrize(
    ("number", "options", "fill"),
    [
        (29, "size=8k", f"dd if=/dev/zero of={FOLDER}/fill bs=4k 2>/dev/null || true"),
        (30, "nr_inodes=2", "true"),
    ],
    ids=["fault_29_space", "fault_30_inodes"],
)
def test_fault_29_and_30_the_disk_is_full(
    number: int, options: str, fill: str, node: Managed
) -> None:
    node.run(
        f"cp -p {SETTINGS} /tmp/kept; mount -t tmpfs -o mode=755,{options} tmpfs {FOLDER};"
        f"cp -p /tmp/kept {SETTINGS}; {fill}"
    )
    outcome = stays(node, node.seen())
    assert "nothing was changed" in outcome.out
    assert "No space left on device" in outcome.out
    node.run(f"umount {FOLDER}")
    node.apply().exits(0)


def test_fault_32_a_read_only_file_system_is_left_alone(node: Managed) -> None:
    node.run(f"mount --bind -o ro {FOLDER} {FOLDER}")
    outcome = stays(node, node.seen())
    assert "Read-only file system" in outcome.out
    node.run(f"umount {FOLDER}")
    node.apply().exits(0)


@pytest.mark.parametrize(
    ("what", "make", "says"),
    [
        ("symbolic link", f"ln -s /etc/elsewhere {SETTINGS}", "is not a regular file"),
        ("dangling link", f"ln -s /tmp/nowhere {SETTINGS}", "is not a regular file"),
        ("folder", f"mkdir {SETTINGS}", "is not a regular file"),
        ("fifo", f"mkfifo {SETTINGS}", "is not a regular file"),
        ("hard link", f"ln /etc/elsewhere {SETTINGS}", "has a second name"),
    ],
)
def test_fault_33_what_is_no_plain_file_is_not_followed(
    what: str, make: str, says: str, manage: Manage
) -> None:
    node = manage("installer")
    node.run(f"rm -rf {FOLDER}; mkdir {FOLDER}; echo '# theirs' >/etc/elsewhere; {make}")
    outcome = node.project("apply", *QUICK, "--timeout", "20").exits(5)
    assert says in outcome.out
    assert node.run("cat /etc/elsewhere") == "# theirs"
    assert node.run(f"ls -A {FOLDER}") == "ollama.env"
    node.run(f"rm -rf {FOLDER}")


def test_fault_34_a_folder_on_another_device_and_a_file_that_is_one(node: Managed) -> None:
    node.run(f"mount -t tmpfs -o mode=755 tmpfs {FOLDER}")
    node.apply().exits(0)
    device = f"stat -c %d {FOLDER} {SETTINGS}"
    assert len(set(node.run(device).split())) == 1
    node.want("C")
    node.run(f"cp {SETTINGS} /tmp/mounted; mount --bind /tmp/mounted {SETTINGS}")
    before = node.seen()
    outcome = node.apply().exits(5)
    assert "Device or resource busy" in outcome.out
    assert node.seen() == before
    node.run(f"umount {SETTINGS}")
    node.apply().exits(0)


def test_fault_35_a_folder_that_others_can_write_is_not_trusted(manage: Manage) -> None:
    managed = manage("installer")
    for unsound, says in (
        (f"install -d -m 0777 {FOLDER}", "is writable by every user"),
        (f"install -d -o 1000 {FOLDER}", "belongs to user 1000"),
    ):
        managed.run(f"rm -rf {FOLDER}; {unsound}")
        assert says in stays(managed, managed.seen()).out
    managed.run(f"rm -rf {FOLDER}")
    managed.apply().exits(0)
    assert managed.run(f"stat -c '%a %u' {FOLDER}") == "755 0"


def test_fault_36_an_error_at_the_flush_is_reported_and_nothing_is_changed(node: Managed) -> None:
    shim = "#!/bin/sh\necho 'sync: error syncing: Input/output error' >&2\nexit 1\n"
    node.node.write("/usr/local/bin/sync", shim)
    node.run("chmod 755 /usr/local/bin/sync")
    outcome = stays(node, node.seen())
    assert "Input/output error" in outcome.out


def test_fault_37_a_foreign_file_that_wins_is_shown_and_not_fought(manage: Manage) -> None:
    managed = manage("installer+foreign-dropin")
    managed.apply().exits(0)
    assert "fleetctl's file wins" in managed.project("check").exits(0).out
    managed.node.write("/etc/foreign", "OLLAMA_KEEP_ALIVE=7m\n")
    managed.node.write(
        "/etc/systemd/system/ollama.service.d/zzz.conf", "[Service]\nEnvironmentFile=/etc/foreign\n"
    )
    managed.run("systemctl daemon-reload; systemctl restart ollama")
    managed.serves()
    for _ in range(2):
        outcome = stays(managed, managed.seen())
        assert "/etc/foreign sets OLLAMA_KEEP_ALIVE=7m, and wins" in outcome.out


def test_fault_38_without_ollama_nothing_is_written(manage: Manage) -> None:
    managed = manage("bare")
    assert "Ollama is not installed" in managed.apply().exits(5).out
    left = "ls -d /etc/fleetctl /var/lib/fleetctl /etc/systemd/system/ollama* 2>/dev/null || true"
    assert managed.run(left) == ""


def test_fault_45_a_restart_that_hangs_is_not_waited_for_for_ever(node: Managed) -> None:
    node.node.write(
        "/etc/systemd/system/ollama.service.d/slow.conf",
        "[Service]\nExecStop=/bin/sleep 600\nTimeoutStopSec=7\n",
    )
    node.run("systemctl daemon-reload")
    before = node.seen()
    outcome = node.disturbed(Disturbance(timeouts={"restart": 4})).exits(5)
    assert "it took too long" in outcome.out
    assert node.seen() == before
    assert node.answers()


def test_fault_47_a_masked_unit_is_not_fought_with(manage: Manage) -> None:
    managed = manage("packaged")
    managed.run("systemctl mask --now ollama")
    outcome = managed.apply().exits(5)
    assert "the service of Ollama is masked" in outcome.out
    assert managed.run("ls -d /etc/fleetctl /var/lib/fleetctl 2>/dev/null || true") == ""


def test_fault_48_a_reload_that_fails_is_rolled_back_and_degraded_is_well(node: Managed) -> None:
    shim = (
        "#!/bin/sh\ncase $* in (*daemon-reload*)"
        " echo 'Failed to reload daemon: Connection refused' >&2; exit 1;; esac\n"
        'exec /usr/bin/systemctl "$@"\n'
    )
    node.node.write("/usr/local/bin/systemctl", shim)
    node.run("chmod 755 /usr/local/bin/systemctl")
    before = node.seen()
    outcome = node.apply().exits(5)
    assert "Failed to reload daemon" in outcome.out
    after = node.seen()
    assert (after.files, after.left, after.run) == (before.files, "", before.run)
    node.run("rm /usr/local/bin/systemctl; systemd-run -q -u broken false; sleep 0.3")
    assert node.run("systemctl is-system-running || true") == "degraded"
    node.apply().exits(0)


def test_fault_50_a_client_is_waited_for_where_that_is_asked_for(node: Managed) -> None:
    run_before = node.seen().run
    with socket.create_connection((node.node.address, OLLAMA_PORT)):
        run = node.project.start("fleetctl", "apply", *QUICK, "--wait-idle")
        time.sleep(5)
        assert run.poll() is None
        assert node.seen().run == run_before
    finished(run).exits(0)
    assert node.seen().run != run_before
    node.want("A")
    with socket.create_connection((node.node.address, OLLAMA_PORT)):
        assert "the restart cuts off 1 open connection" in node.apply().exits(0).err


# --- signals to the controller ---


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_fault_62_and_63_one_signal_ends_the_run_when_the_step_is_done(
    name: str, code: int, node: Managed
) -> None:
    outcome = node.disturbed(Disturbance(when="step stage", what=name)).exits(code)
    assert "finishing what has begun" in outcome.err
    seen = node.seen()
    assert seen.left == ""
    assert seen.effective("OLLAMA_KEEP_ALIVE") == "1h6m0s"  # B: it was begun, and is whole
    node.project("check").exits(0)


def test_fault_62_a_second_ctrl_c_stops_now_and_the_node_goes_back(node: Managed) -> None:
    before = node.seen()
    # the settle time is long, so that the second one comes while the node waits for the verdict
    twice = Disturbance(when="restarted", what="SIGINT SIGINT")
    outcome = node.disturbed(twice, "--settle", "20").exits(130)
    assert "interrupted" in outcome.err
    node.rests()
    node.serves()
    after = node.seen()
    assert (after.files, after.environ) == (before.files, before.environ)
    assert after.left == ""
    node.apply().exits(0)


def test_fault_62_ctrl_c_during_the_way_back_does_not_stop_it(manage: Manage) -> None:
    managed = fragile(manage, "user")
    before = managed.seen()
    managed.set(keep_alive="20m", env={"GPU_DEVICE_ORDINAL": "never-answers"})
    outcome = managed.disturbed(
        Disturbance(when="step undo", what="SIGINT"), "--health-timeout", "2"
    ).exits(130)
    assert "rolled back" in outcome.out
    assert managed.seen() == before
    assert managed.answers()


@pytest.mark.parametrize("kinds", ["user", "installer"])
def test_fault_63_a_controller_that_stands_still_is_taken_for_dead(
    kinds: str, manage: Manage
) -> None:
    managed = manage(kinds)
    managed.want("A")
    managed.apply().exits(0)
    before = managed.seen()
    managed.want("B")
    still = Disturbance(when="restarted", what="SIGSTOP", timeouts={"silent": 4})
    run = managed.project.start(*still.arguments, "apply", *QUICK)
    stopped(run.pid)
    managed.rests()
    after = managed.seen()
    assert after == before
    assert after.left == ""
    os.kill(run.pid, signal.SIGCONT)
    assert "rolled back" in finished(run).exits(5).out
    assert managed.seen() == before
    managed.apply().exits(0)


def stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.05)
