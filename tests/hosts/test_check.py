"""`check` on real hosts: what it finds, on every kind of node, and that it leaves no trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hosts.project import LabProject
from tests.lab.fixture_types import Boot, Observe, Shared
from tests.lab.lab import Lab
from tests.lab.node import Node

pytestmark = [pytest.mark.host, pytest.mark.ollama]

DROP_IN = "/etc/systemd/system/ollama.service.d/zz-fleetctl.conf"
AS_INSTALLED = [
    "OLLAMA_HOST http://127.0.0.1:11434 → 0.0.0.0:11434",
    "OLLAMA_KEEP_ALIVE 5m → -1 (forever)",
    "OLLAMA_NO_CLOUD off → on",
    f"write {DROP_IN}",
    "restart Ollama, because it runs with OLLAMA_HOST http://127.0.0.1:11434 (and 2 more)",
]
UNSEEN = [
    "OLLAMA_HOST (default) → 0.0.0.0:11434",
    "OLLAMA_KEEP_ALIVE (default) → -1 (forever)",
    "OLLAMA_NO_CLOUD (default) → on",
    f"write {DROP_IN}",
]


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> LabProject:
    return LabProject(lab, tmp_path)


def restart(lab: Lab, node: Node) -> None:
    lab.ssh(node, "systemctl daemon-reload; systemctl restart ollama", root=True)
    node.wait_for_ollama()


@pytest.mark.parametrize(
    "kinds",
    [
        "installer",
        "installer+zsh",
        "installer+fish",
        "installer+csh",
        "packaged",
        "installer+ipv6-only",
    ],
)
def test_every_kind_of_node_as_installed_differs_in_the_same(
    kinds: str, shared: Shared, project: LabProject
) -> None:
    node = shared(kinds)
    project.add(node)
    assert project.changes(node) == AS_INSTALLED
    project("check").exits(3)


@pytest.mark.parametrize("kinds", ["sudo-password", "sudo-denied", "sudo-absent", "sudo-limited"])
def test_without_sudo_what_is_for_root_only_is_not_known(
    kinds: str, shared: Shared, project: LabProject
) -> None:
    node = shared(f"installer+{kinds}")
    project.add(node)
    assert project.changes(node) == UNSEEN
    out = project("check").exits(3).out
    assert "not known: what Ollama runs with is not known, because" in out


def test_the_password_of_sudo_opens_what_is_for_root_only(
    shared: Shared, project: LabProject
) -> None:
    node = shared("installer+sudo-password")
    project.add(node)
    secret = project.folder / "password"
    secret.write_text("lab-password\n")
    assert project.changes(node, "--sudo-password-file", str(secret)) == AS_INSTALLED
    secret.write_text("wrong\n")
    outcome = project("check", "--sudo-password-file", str(secret)).exits(5)
    assert "sudo did not let us in" in outcome.out


def test_files_exactly_as_planned_are_as_desired(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("installer")
    project.add(node)
    project.put_what_the_plan_says(node)
    assert "reload the definition of the service, which was changed on disk" in project.changes(
        node
    )
    lab.ssh(node, "systemctl daemon-reload", root=True)
    assert project.changes(node) == [AS_INSTALLED[-1]]
    restart(lab, node)
    assert project("check").exits(0).out.startswith("1 node: 1 ok")


def test_user_scope_is_found_and_judged_alike(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("user")
    project.add(node)
    assert project.changes(node) == [
        *AS_INSTALLED[:3],
        "write ~/.config/systemd/user/ollama.service.d/zz-fleetctl.conf",
        AS_INSTALLED[-1],
    ]
    project.put_what_the_plan_says(node)
    lab.ssh(node, "systemctl --user daemon-reload; systemctl --user restart ollama")
    node.wait_for_ollama()
    project("check").exits(0)


def test_values_that_hold_by_a_foreign_file_need_no_restart(
    boot: Boot, lab: Lab, project: LabProject
) -> None:
    node = boot("installer+foreign-dropin")
    project.add(node, ollama={"keep_alive": "10m", "no_cloud": False})
    assert project.changes(node) == [
        "OLLAMA_HOST stays 0.0.0.0:11434",
        "OLLAMA_KEEP_ALIVE stays 10m",
        "OLLAMA_NO_CLOUD stays off",
        f"write {DROP_IN}",
    ]


def test_foreign_files_are_named_whether_they_lose_or_win(
    boot: Boot, lab: Lab, project: LabProject
) -> None:
    node = boot("installer+foreign-dropin+foreign-envfile")
    project.add(node, ollama={"num_parallel": 4})
    out = project("check").exits(3).out
    assert "override.conf sets OLLAMA_KEEP_ALIVE=10m too; fleetctl's file wins" in out
    assert "/etc/default/ollama sets OLLAMA_NUM_PARALLEL=2 too; fleetctl's file wins" in out
    node.write(
        "/etc/systemd/system/ollama.service.d/zzz.conf",
        "[Service]\nEnvironmentFile=/etc/default/ollama\n",
    )
    lab.ssh(node, "systemctl daemon-reload", root=True)
    out = project("check").exits(3).out
    assert "obstacle: /etc/default/ollama sets OLLAMA_NUM_PARALLEL=2, and wins" in out


def test_what_somebody_else_did_is_found(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("installer")
    project.add(node)
    project.put_what_the_plan_says(node)
    restart(lab, node)
    env_file = "/etc/fleetctl/ollama.env"
    lab.ssh(node, f"sed -i s/-1/9m/ {env_file}", root=True)
    assert '-OLLAMA_KEEP_ALIVE="9m"' in project("check").exits(3).out
    lab.ssh(node, f"sed -i s/9m/-1/ {env_file}", root=True)
    lab.ssh(node, "(OLLAMA_HOST=127.0.0.1:9999 setsid ollama serve >/dev/null 2>&1 &)")
    assert "another Ollama serves here: pid" in project("check").exits(3).out


def test_a_masked_unit_is_not_fought_with(boot: Boot, lab: Lab, project: LabProject) -> None:
    node = boot("packaged")
    project.add(node)
    lab.ssh(node, "systemctl mask --now ollama", root=True)
    assert "obstacle: the service of Ollama is masked" in project("check").exits(3).out


def test_a_value_that_ollama_does_not_take_is_told(
    boot: Boot, lab: Lab, project: LabProject
) -> None:
    """It reads the environment of its process, and not every version knows every variable."""
    node = boot("installer")
    binary = "/usr/local/bin/ollama"
    lab.ssh(node, f"mv {binary} {binary}.real", root=True)
    node.write(binary, f'#!/bin/sh\nOLLAMA_KEEP_ALIVE=1h {binary}.real "$@"\n')
    lab.ssh(node, f"chmod 755 {binary}", root=True)
    project.add(node, ollama={"keep_alive": "20m"})
    project.put_what_the_plan_says(node)
    restart(lab, node)
    out = project("check").exits(3).out
    assert "obstacle: Ollama was given OLLAMA_KEEP_ALIVE=20m0s and uses 1h0m0s" in out


def test_one_dead_node_changes_nothing_for_the_others(
    shared: Shared, boot: Boot, project: LabProject
) -> None:
    dead = boot("bare")
    project.add(dead)
    dead.cut_power()
    for kinds in ("installer", "packaged"):
        project.add(shared(kinds))
    found = project("check", "--json", "--timeout", "3").exits(4).json["nodes"]
    assert sorted(node["state"] for node in found.values()) == ["drift", "drift", "unreachable"]


@pytest.mark.parametrize("kinds", ["installer", "user", "installer+sudo-denied", "bare"])
def test_check_leaves_no_trace(
    kinds: str, boot: Boot, observe: Observe, project: LabProject
) -> None:
    node = boot(kinds)
    project.add(node)
    project("check")
    look = (
        "find /etc /usr /opt /var/lib /home /root /tmp -xdev"
        " ! -path '/var/lib/systemd/*' ! -path '/var/lib/sudo/*' ! -path '/home/ada/.cache*'"
        " -printf '%p %i %T@ %C@ %s %m %u\\n' | sort"
        "; systemctl show ollama -p MainPID -p InvocationID"
    )
    before = observe(node).check_output(look)
    project("check")
    assert observe(node).check_output(look) == before


def test_a_jump_host_is_passed_and_must_be_known_too(boot: Boot, project: LabProject) -> None:
    jump = boot("jump")
    node = boot("installer+behind-jump", jump=jump)
    project.add(node)
    project.nodes[node.name]["ssh"]["jump"] = f"ada@{jump.address}"
    config = project.folder / ".ssh"
    config.mkdir()
    (config / "config").write_text(f"IdentityFile {project.lab.identity_file}\n")
    assert project.changes(node) == AS_INSTALLED
    known = project.folder / ".fleetctl" / "known_hosts"
    lines = [line for line in known.read_text().splitlines() if jump.address not in line]
    known.write_text("\n".join(lines) + "\n")
    outcome = project("check").exits(8)
    assert f"the jump host ada@{jump.address}: its host key is not known" in outcome.out
    fingerprint = re.search(r"SHA256:\S+", outcome.out)
    assert fingerprint
    trusted = project("trust", node.name, "--fingerprint", fingerprint[0]).exits(0)
    assert f"trusted: {jump.address}\n" in trusted.out
    project("check").exits(3)


def test_a_password_that_sudo_does_not_want_reaches_nobody(
    shared: Shared, project: LabProject
) -> None:
    node = shared("installer+sudo-free")
    project.add(node)
    secret = project.folder / "password"
    secret.write_text("touch-me-not\n")
    project("apply", "--dry-run", "--sudo-password-file", str(secret)).exits(3)
    project("unlock", node.name, "--sudo-password-file", str(secret)).exits(0)
    for log in (project.folder / ".fleetctl" / "logs").iterdir():
        assert "touch-me-not" not in log.read_text()
