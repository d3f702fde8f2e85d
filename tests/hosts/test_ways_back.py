"""Ways back on real nodes: what only root may read, two scopes on one node, services that crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hosts.managed import QUICK, Manage, Managed
from tests.sim.remote import eventually

pytestmark = [pytest.mark.host, pytest.mark.ollama]

SECRET = "/etc/secret.conf"


def steps(managed: Managed, *own: dict[str, Any]) -> None:
    file = managed.project.folder / "playbooks/apply.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"steps": [{"import": "apply.yaml"}, *own]}))


def test_a_file_that_only_root_may_read_is_looked_after_and_given_back(manage: Manage) -> None:
    node = manage("installer")
    node.run(f"echo theirs >{SECRET}; chown ollama:ollama {SECRET}; chmod 0600 {SECRET}")
    before = node.run(f"stat -c '%a %U %G' {SECRET}; cat {SECRET}")
    steps(node, {"file": {"path": SECRET, "content": "ours\n", "sudo": True, "mode": "0600"}})
    node.apply().exits(0)
    node.project("check").exits(0)
    node.run(f"echo edited >{SECRET}")
    assert f"change {SECRET}" in node.project("check").exits(3).out
    node.apply().exits(0)
    assert node.run(f"stat -c '%a %U %G' {SECRET}; cat {SECRET}") == "600 ollama ollama\nours"
    node.project("remove", node.node.name, *QUICK).exits(0)
    assert node.run(f"stat -c '%a %U %G' {SECRET}; cat {SECRET}") == before


def test_fleetctls_own_file_may_be_for_root_only(manage: Manage) -> None:
    node = manage("installer")
    node.want("A")
    node.apply().exits(0)
    node.run(f"chmod 0600 {node.place['settings']}")
    node.want("B")
    node.apply().exits(0)
    assert node.seen().effective("OLLAMA_KEEP_ALIVE") == "1h6m0s"


def test_of_two_scopes_the_last_change_goes_back_and_no_other(manage: Manage) -> None:
    node = manage("installer")
    name = node.node.name
    for letter, text in (("A", "one"), ("B", "two"), ("B", "three")):
        node.want(letter)
        steps(node, {"file": {"path": "~/note", "content": text}})
        node.apply().exits(0)
    shown = node.project("history", name).exits(0).out
    assert "system-2" in shown
    assert "user-3" in shown
    assert "system-1" in node.project("restore", name, "--to", "2", *QUICK).exits(5).err
    node.project("restore", name, *QUICK).exits(0)
    assert node.run("cat /home/ada/note") == "two"
    assert node.seen().effective("OLLAMA_KEEP_ALIVE") == "1h6m0s"
    node.project("restore", name, "--to", "system-2", *QUICK).exits(0)
    assert node.run("cat /home/ada/note") == "two"
    assert node.seen().effective("OLLAMA_KEEP_ALIVE") == "1h5m0s"


def test_a_service_between_two_starts_is_not_left_stopped(manage: Manage) -> None:
    """Its disk is not there yet; systemd tries again and again."""
    node = manage("installer")
    late = "/etc/systemd/system/ollama.service.d/late.conf"
    node.run(
        "touch /mnt/later; mkdir -p /etc/systemd/system/ollama.service.d;"
        f"printf '[Service]\\nEnvironment=OLLAMA_MODELS=/mnt/later/models\\n' >{late};"
        "systemctl daemon-reload; systemctl restart ollama"
    )
    node.want("A")
    node.apply().exits(5)
    state = "systemctl show ollama -p ActiveState --value"
    assert node.run(state) in ("activating", "active")
    node.run("rm /mnt/later; mkdir -m 777 /mnt/later")
    eventually(lambda: node.run(f"{state}; ls /mnt/later") == "active\nmodels", 30)


def test_a_home_may_have_a_blank_in_its_name(manage: Manage) -> None:
    node = manage("user")
    node.run(
        "loginctl terminate-user ada; while pgrep -u ada >/dev/null; do sleep 0.1; done;"
        "usermod -d '/home/ada lovelace' -m ada; systemctl restart user@1000"
    )
    node.want("A")
    node.apply().exits(0)
    node.project("check").exits(0)
