"""From an empty folder to a working node, and back to a node on which fleetctl has never been."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import FleetctlIn
from tests.hosts.project import LabProject
from tests.lab.base import USER
from tests.lab.credentials import credentials
from tests.lab.fixture_types import Boot, Observe
from tests.lab.lab import Lab
from tests.lab.node import Node

pytestmark = [pytest.mark.host, pytest.mark.ollama]

# Everything that is on the node, by content, mode and owner; a folder's own times may change.
CHOSEN = (
    "find {} -xdev ! -path '/var/lib/systemd/*' ! -path '/var/lib/sudo/*'"
    " ! -path '/home/ada/.cache*' ! -path '*/.ollama*' ! -path '/usr/share/ollama/*'"
)
FILES = (
    CHOSEN.format("/etc /usr /opt /var/lib /home /root") + " -printf '%p %m %u %l\\n' | sort; "
    f"{CHOSEN.format('/etc /var/lib /home /root')} -type f -print0 | sort -z | xargs -0 cksum"
)
UNIT = "systemctl %s show ollama -p UnitFileState -p DropInPaths -p EnvironmentFiles -p ActiveState"


def fingerprint(node: Node) -> str:
    (public,) = node.root.glob("etc/ssh/ssh_host_*_key.pub")
    said = subprocess.run(["ssh-keygen", "-lf", public], capture_output=True, text=True).stdout
    return said.split()[1]


def everything(observe: Observe, node: Node, scope: str) -> str:
    host = observe(node)
    as_user = f"XDG_RUNTIME_DIR=/run/user/1000 runuser -u {USER} -- " if scope == "--user" else ""
    return str(host.check_output(f"{FILES}; {as_user}{UNIT % scope}"))


@pytest.mark.parametrize(("kinds", "scope"), [("installer", "--system"), ("user", "--user")])
def test_a_machine_joins_an_empty_project_works_and_leaves_as_it_came(
    kinds: str, scope: str, boot: Boot, lab: Lab, observe: Observe, tmp_path: Path
) -> None:
    node = boot(kinds)
    before = everything(observe, node, scope)
    fleetctl = FleetctlIn(tmp_path)
    (tmp_path / ".ssh").mkdir()
    shutil.copy(lab.identity_file, tmp_path / ".ssh" / "id_ed25519")
    add = ["provision", "--add", f"{USER}@{node.address}", "--as", "first", "--yes"]
    assert "--fingerprint SHA256:" in fleetctl(*add).exits(8).err
    fleetctl(*add, "--fingerprint", fingerprint(node)).exits(0)
    fleetctl("check").exits(0)
    assert everything(observe, node, scope) != before
    fleetctl("remove", "first", "--yes").exits(0)
    assert everything(observe, node, scope) == before
    assert node.ollama_listens()
    fleetctl("check").exits(3)


def test_all_that_is_in_the_way_is_said_at_once_and_nothing_is_touched(
    boot: Boot, lab: Lab, observe: Observe, tmp_path: Path
) -> None:
    good, locked, bare = boot("installer"), boot("installer+sudo-password"), boot("bare")
    project = LabProject(lab, tmp_path)
    for node in (good, locked, bare):
        project.add(node)
    project.nodes["gone"] = {"ssh": {"host": "127.0.0.1", "port": 1}}
    before = everything(observe, good, "--system")
    out = project("provision", "--yes").exits(5).out
    assert f"{locked.name}: obstacle: sudo needs a password" in out
    assert "ada ALL=(root) NOPASSWD: ALL" in out
    assert f"{bare.name}: obstacle: Ollama is not installed" in out
    assert "gone: failed: 127.0.0.1:1 refused the connection" in out
    assert f"{good.name}: skipped: another node is not ready" in out
    assert everything(observe, good, "--system") == before


def test_root_needs_no_sudo(boot: Boot, lab: Lab, tmp_path: Path) -> None:
    project, node = LabProject(lab, tmp_path), boot("installer+sudo-absent")
    project.add(node)
    key = credentials() / "observer"
    project.nodes[node.name]["ssh"] |= {"user": "root", "identity_file": str(key)}
    project("provision", "--yes", "--settle", "1").exits(0)
    lab.ssh(node, "ln -s boot:1:2:abc:eve@elsewhere /var/lib/fleetctl/lock", root=True)
    assert (
        "unlocked, was held by eve@elsewhere" in project("unlock", node.name, "--yes").exits(0).out
    )
    assert "not locked" in project("unlock", node.name).exits(0).out
    project("check").exits(0)
