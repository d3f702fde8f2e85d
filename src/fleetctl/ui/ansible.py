"""A fleet as the JSON that Ansible takes from a dynamic inventory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fleetctl.errors import Exit, FleetError
from fleetctl.model.fleet import Fleet, Node, Ssh


def inventory(fleet: Fleet, nodes: Iterable[Node]) -> dict[str, object]:
    """Groups and tags become groups; what is not ours to set up is left out."""
    managed = [(node, node.ssh) for node in nodes if node.ssh]
    groups: dict[str, list[str]] = {}
    meant = {"all": "every host", "ungrouped": "hosts without a group"}
    for node, _ in managed:
        its = {f"group {group}": group for group in node.groups}
        its |= {f"tag {tag}": f"tag_{tag}" for tag in node.tags}
        for what, name in (its or {meant["ungrouped"]: "ungrouped"}).items():
            spelled = re.sub(r"\W", "_", name, flags=re.ASCII)
            if meant.setdefault(spelled, what) != what:
                raise FleetError(
                    f"{what} cannot be told to Ansible, to which {spelled} means {meant[spelled]}",
                    hint="rename it in the inventory",
                    exit_code=Exit.USAGE,
                )
            groups.setdefault(spelled, []).append(node.name)
    return {
        "_meta": {"hostvars": {node.name: _variables(fleet, node, ssh) for node, ssh in managed}},
        "all": {"children": sorted({*groups, "ungrouped"})},
        **{name: {"hosts": hosts} for name, hosts in sorted(groups.items())},
    }


def _variables(fleet: Fleet, node: Node, ssh: Ssh) -> dict[str, object]:
    mapped = [model for model in fleet.models.values() if node.name in model.nodes]
    known = {
        "ansible_host": ssh.host,
        "ansible_user": ssh.user,
        "ansible_port": ssh.port,
        "ansible_ssh_private_key_file": ssh.identity_file,
        "ansible_ssh_common_args": f"-J {ssh.jump}" if ssh.jump else None,
        "ansible_connection": "local" if ssh.is_local else None,
        "ollama_endpoint": node.endpoint,
        "ollama_environment": dict(node.environment),
        "ollama_models": sorted({model.ollama_model for model in mapped}),
    }
    return {name: value for name, value in known.items() if value is not None}
