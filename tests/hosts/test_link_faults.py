"""Faults between controller and node, by their numbers in the catalogue; on real sshd."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.project import LabProject
from tests.hosts.test_check import AS_INSTALLED
from tests.lab.base import USER
from tests.lab.command import run
from tests.lab.fixture_types import Boot, Shared
from tests.lab.lab import Lab
from tests.lab.node import Node
from tests.lab.proxy import Toxics, Way, proxy_to

pytestmark = [pytest.mark.host, pytest.mark.ollama]


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> LabProject:
    return LabProject(lab, tmp_path)


def configure_sshd(lab: Lab, node: Node, text: str) -> None:
    node.write("/etc/ssh/sshd_config.d/test.conf", text)
    lab.ssh(node, "systemctl restart ssh", root=True)


def test_fault_2_nobody_answers(project: LabProject, shared: Shared) -> None:
    """A full backlog drops the SYN, as a black hole would."""
    project.add(shared("installer"))
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        filling = [socket.socket() for _ in range(4)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        project.nodes["hole"] = {"ssh": {"host": "127.0.0.1", "port": port}}
        started = time.monotonic()
        out = project("check", "--timeout", "2").exits(4).out
        taken = time.monotonic() - started
        for each in filling:
            each.close()
    assert f"no answer from 127.0.0.1:{port} in 2 s" in out
    assert "OLLAMA_KEEP_ALIVE" in out  # the other node was looked at all the same
    assert taken < 10


@pytest.mark.parametrize("kind", ["unreachable", "prohibit"])
def test_fault_3_the_network_says_no(kind: str, project: LabProject, lab: Lab) -> None:
    address = lab.network.ipv4(250)
    run("ip", "route", "add", kind, f"{address}/32")
    try:
        project.nodes["gone"] = {"ssh": {"host": address}}
        out = project("check").exits(4).out
    finally:
        run("ip", "route", "delete", kind, f"{address}/32")
    assert f"{address}:22 cannot be reached" in out


def test_fault_5_a_busy_sshd_is_tried_again(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("installer")
    project.add(node)
    configure_sshd(lab, node, "MaxStartups 1\n")
    held = socket.create_connection((node.address, 22))
    held.recv(100)
    threading.Timer(0.6, held.close).start()
    assert project.changes(node) == AS_INSTALLED


@pytest.fixture
def full_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that holds ten keys, none of which the node knows."""
    said = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    values = dict(part.split("=", 1) for part in said.replace("\n", "").split(";") if "=" in part)
    monkeypatch.setenv("SSH_AUTH_SOCK", values["SSH_AUTH_SOCK"])
    for at in range(10):
        key = str(tmp_path / f"key-{at}")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        subprocess.run(["ssh-add", "-q", key], check=True)
    yield
    os.kill(int(values["SSH_AGENT_PID"]), 15)


def test_fault_8_only_the_named_key_is_offered(
    boot: Boot, lab: Lab, project: LabProject, full_agent: None
) -> None:
    node = boot("installer")
    project.add(node)
    configure_sshd(lab, node, "MaxAuthTries 2\n")
    agent = {"SSH_AUTH_SOCK": os.environ["SSH_AUTH_SOCK"]}
    assert "OLLAMA_KEEP_ALIVE" in project("check", env=agent).exits(3).out


def test_fault_14_a_peer_that_vanishes_is_noticed(shared: Shared, project: LabProject) -> None:
    node = shared("installer")
    with proxy_to(node.address, 22, Toxics(stall_after=6000)) as proxy:
        project.lead_through(node, proxy.port)
        started = time.monotonic()
        project("check", "--timeout", "3").exits(4)
        assert time.monotonic() - started < 15


def test_fault_12_a_cut_connection_is_a_result(shared: Shared, project: LabProject) -> None:
    node = shared("installer")
    for at in (100, 2000, 3500, 6000, 9000):
        with proxy_to(node.address, 22, Toxics(cut_after=at)) as proxy:
            project.lead_through(node, proxy.port)
            assert project("check", "--timeout", "3").code in (4, 5), at


def test_fault_11_outdated_algorithms_are_named_and_refused(
    shared: Shared, project: LabProject
) -> None:
    project.add(shared("bare+weak-ssh"))
    out = project("check").exits(8).out
    assert "offers only outdated algorithms: no acceptable kex algorithm among " in out
    assert "diffie-hellman-group14-sha1" in out


def test_fault_15_a_long_way_takes_few_round_trips(shared: Shared, project: LabProject) -> None:
    node = shared("installer")
    with proxy_to(node.address, 22, Toxics(delay=0.15)) as proxy:  # each way
        project.lead_through(node, proxy.port)
        assert project.changes(node) == AS_INSTALLED
        assert proxy.turns.count(Way.UP) <= 12


@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_fault_16_lost_packets_only_take_time(
    loss: float, shared: Shared, project: LabProject
) -> None:
    node = shared("installer")
    with proxy_to(node.address, 22, Toxics(slice=1400, loss=loss)) as proxy:
        project.lead_through(node, proxy.port)
        outcome = project("check", "--json", "--timeout", "10")
    assert outcome.code == 3 or (loss > 0.05 and outcome.code == 4), outcome.err
    assert outcome.json["nodes"][node.name]["state"] in ("drift", "unreachable")


def test_fault_18_one_byte_at_a_time(shared: Shared, project: LabProject) -> None:
    node = shared("installer")
    with proxy_to(node.address, 22, Toxics(slice=1)) as proxy:
        project.lead_through(node, proxy.port)
        assert project.changes(node) == AS_INSTALLED


@pytest.mark.parametrize("port", [22, 2222])
def test_fault_20_a_link_local_address_has_its_zone_and_its_brackets(
    port: int, boot: Boot, lab: Lab, project: LabProject
) -> None:
    """What `trust` remembers must be what OpenSSH finds there, too."""
    node = boot("installer")
    host = lab.network.link_local(node.host)
    configure_sshd(lab, node, "Port 22\nPort 2222\n")
    project.add(node)
    project.nodes[node.name]["ssh"] |= {"host": host, "port": port}
    del project.nodes[node.name]["endpoint"]
    shown = project("inventory", "--json").exits(0).json["nodes"][node.name]["endpoint"]
    assert shown["value"] == f"http://[{host.replace('%', '%25')}]:11434"  # as RFC 6874 has it
    project.know("")
    fingerprint = re.search(r"SHA256:\S+", project("check").exits(8).out)
    assert fingerprint
    project("trust", node.name, "--fingerprint", fingerprint[0]).exits(0)
    assert project.changes(node) == AS_INSTALLED
    known = project.folder / ".fleetctl" / "known_hosts"
    strict = (f"-oUserKnownHostsFile={known}", "-oGlobalKnownHostsFile=none", "-oBatchMode=yes")
    key = ("-i", lab.identity_file, "-F", "/dev/null", "-p", str(port))
    assert run("ssh", *strict, *key, f"{USER}@{host}", "echo in") == "in\n"


def test_fault_17_a_slow_line_is_only_slow(shared: Shared, project: LabProject) -> None:
    node = shared("installer")
    with proxy_to(node.address, 22, Toxics(slice=800, delay=0.1)) as proxy:  # 64 kbit/s
        project.lead_through(node, proxy.port)
        assert project.changes(node) == AS_INSTALLED


def test_fault_21_a_dead_jump_host_is_one_message(
    boot: Boot, shared: Shared, project: LabProject
) -> None:
    jump = boot("jump")
    jump.cut_power()
    for at in range(3):
        project.nodes[f"behind-{at}"] = {
            "ssh": {"host": f"10.97.99.{at + 1}", "jump": f"ada@{jump.address}"},
            "endpoint": "http://127.0.0.1:1",
        }
    out = project("check", "--timeout", "2").exits(4).out
    assert out.count(f"the jump host ada@{jump.address}: ") == 3
    assert len({line.partition(": ")[2] for line in out.splitlines() if "jump host" in line}) == 1


def test_fault_22_sftp_is_not_needed(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("installer")
    project.add(node)
    lab.ssh(node, "sed -i /Subsystem/d /etc/ssh/sshd_config; systemctl restart ssh", root=True)
    assert project.changes(node) == AS_INSTALLED


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        ("echo 'ForceCommand echo no entry' >/etc/ssh/sshd_config.d/x.conf", "no entry"),
        ("usermod --shell /usr/sbin/nologin ada", "This account is currently not available"),
    ],
    ids=["ForceCommand", "nologin"],
)
def test_fault_23_an_account_without_a_shell_is_named(
    prepare: str, says: str, boot: Boot, lab: Lab, project: LabProject
) -> None:
    node = boot("installer")
    project.add(node)
    lab.ssh(node, f"{prepare}; (sleep 0.3; systemctl restart ssh) >/dev/null 2>&1 &", root=True)
    time.sleep(1)
    assert f"it said: {says}" in project("check").exits(4).out


QUIET_IN_THE_END = [
    *(f"installer{shell}+noisy" for shell in ("", "+zsh", "+fish", "+csh")),
    *(f"installer{shell}+rc-strict" for shell in ("", "+zsh", "+fish", "+csh")),
    "installer+banner",
]


@pytest.mark.parametrize("kinds", QUIET_IN_THE_END)
def test_fault_70_what_a_shell_does_before_ours_changes_nothing(
    kinds: str, shared: Shared, project: LabProject
) -> None:
    node = shared(kinds)
    project.add(node)
    assert project.changes(node) == AS_INSTALLED
    outcome = project("check").exits(3)
    assert "\x1b" not in outcome.out + outcome.err


def test_fault_70_a_shell_that_exits_by_itself_is_told(shared: Shared, project: LabProject) -> None:
    node = shared("installer+rc-exits")
    project.add(node)
    outcome = project("check").exits(4)
    assert "its shell did not run the script" in outcome.out
    assert "\x1b" not in outcome.out + outcome.err
