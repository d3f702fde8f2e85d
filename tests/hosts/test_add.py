"""`provision --add` up to the inventory, on real hosts: sshd takes the password, then the key."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.adding import Adding
from tests.conftest import FleetctlIn
from tests.lab.base import PASSWORD, USER
from tests.lab.credentials import make_ssh_key
from tests.lab.fixture_types import Boot, Observe, Shared
from tests.lab.lab import Lab
from tests.lab.node import Node

pytestmark = pytest.mark.host


@pytest.fixture
def add(tmp_path: Path) -> Adding:
    """With a key that no machine has seen, and a file with the password."""
    (tmp_path / "project").mkdir()
    (tmp_path / ".ssh").mkdir(mode=0o700)
    make_ssh_key(tmp_path / ".ssh" / "id_ed25519")
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    return Adding(tmp_path / "project", tmp_path)


def options(add: Adding, node: Node) -> list[str]:
    (public,) = node.root.glob("etc/ssh/ssh_host_*_key.pub")
    shown = subprocess.run(["ssh-keygen", "-lf", public], capture_output=True, text=True).stdout
    secret = str(add.home / "secret")
    return ["--yes", "--fingerprint", shown.split()[1], "--password-file", secret]


def target(node: Node) -> str:
    return f"{USER}@{node.address}" if node.kind.ipv4 else f"{USER}@[{node.address}]"


@pytest.mark.ollama
@pytest.mark.parametrize(
    "kinds",
    [
        "installer+password-login",
        "installer+password-login+csh+noisy",
        "installer+keyboard-interactive+fish",
        "installer+password-login+ipv6-only",
    ],
)
def test_a_password_lets_the_key_in_and_the_node_can_be_checked(
    kinds: str, boot: Boot, add: Adding, observe: Observe
) -> None:
    node = boot(kinds)
    node.wait_for_ollama()
    keys = f"/home/{USER}/.ssh/authorized_keys"
    before = observe(node).file(keys).content_string
    outcome = add(target(node), *options(add, node)).exits(0)
    assert outcome.json["node"] == node.name
    assert (
        "Debian GNU/Linux 12 (bookworm), x86_64, Ollama 0.24.0 as a system service" in outcome.err
    )
    public = (add.home / ".ssh" / "id_ed25519.pub").read_text().split()
    file = observe(node).file(keys)
    assert file.content_string == f"{before}{public[0]} {public[1]} fleetctl\n"
    assert file.user == USER
    again = add(target(node), *options(add, node), "-i", "other.yaml").exits(0)
    assert "your key is accepted already" in again.err
    assert observe(node).file(keys).mtime == file.mtime
    check = FleetctlIn(add.folder)("check", env={"HOME": str(add.home)}).exits(3)
    assert "OLLAMA_KEEP_ALIVE 5m → -1 (forever)" in check.out


def test_a_home_without_ssh_gets_one_that_sshd_accepts(
    boot: Boot, add: Adding, observe: Observe
) -> None:
    node = boot("bare+password-login")
    observe(node).check_output(f"rm -r /home/{USER}/.ssh")
    (add.home / "secret").write_text("wrong\n")
    refused = add(target(node), *options(add, node)).exits(4)
    assert "was refused (tried a password)" in refused.err
    log = observe(node).check_output("journalctl --no-pager -u ssh")
    assert log.count("Failed password for ada") == 1
    assert not observe(node).file(f"/home/{USER}/.ssh").exists
    (add.home / "secret").write_text(f"{PASSWORD}\n")
    assert "without Ollama" in add(target(node), *options(add, node)).exits(0).err
    folder = observe(node).file(f"/home/{USER}/.ssh")
    keys = observe(node).file(f"/home/{USER}/.ssh/authorized_keys")
    assert (folder.user, folder.mode, keys.user, keys.mode) == (USER, 0o700, USER, 0o600)


def test_a_key_that_sshd_will_not_read_is_said(boot: Boot, add: Adding, observe: Observe) -> None:
    node = boot("bare+password-login")
    observe(node).check_output(f"chmod 777 /home/{USER}")
    outcome = add(target(node), *options(add, node)).exits(4)
    assert "the key is in its ~/.ssh/authorized_keys now, and still login as ada" in outcome.err
    assert not (add.folder / "fleet.yaml").exists()


def test_a_server_that_takes_only_keys_says_so(shared: Shared, add: Adding) -> None:
    node = shared("bare")
    assert (
        "takes no password, only publickey" in add(target(node), *options(add, node)).exits(4).err
    )


def test_a_jump_host_never_sees_the_password(
    boot: Boot, add: Adding, lab: Lab, observe: Observe
) -> None:
    jump = boot("jump+password-login")
    node = boot("bare+behind-jump+password-login", jump=jump)
    observe(node).check_output(f"rm /home/{USER}/.ssh/authorized_keys")
    shutil.copy(lab.identity_file, add.home / ".ssh" / "id_ed25519")
    (add.folder / ".fleetctl").mkdir()
    shutil.copy(lab.known_hosts, add.folder / ".fleetctl" / "known_hosts")
    way = f"defaults: {{ssh: {{jump: {USER}@{jump.address}}}}}  # the only way\n"
    (add.folder / "fleet.yaml").write_text(way)
    add(target(node), *options(add, node)).exits(0)
    assert (add.folder / "fleet.yaml").read_text().startswith(f"{way}nodes:\n  {node.name}:\n")
    assert "Accepted password for ada" in observe(node).check_output("journalctl --no-pager -u ssh")
    assert "password" not in observe(jump).check_output("journalctl --no-pager -u ssh")
