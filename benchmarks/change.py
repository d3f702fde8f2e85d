"""Keep-alive changed on N nodes, restart included: fleetctl beside raw ssh, pyinfra and Ansible.

Every run writes one value of an environment file, restarts the service and waits until Ollama's API
answers, on all machines at once. All tools in turn, round after round; each finds the value of the
one before it, so that every run has something to change, and what it did is checked on every
machine. Raw ssh only does it; fleetctl also looks before and after, journals, and is ready to roll
back. By default it then watches the service for 3 s, which is policy and not work, so it is also
measured without. The last line says how many SSH connections an apply makes.

    python benchmarks/change.py 1 10 50 --peers 10
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rig import ENVIRONMENT, Rig, inventory, rig
from side_by_side import (
    FLEETCTL,
    FLOOR,
    FORKS,
    Row,
    Tool,
    ansible,
    converge,
    measure,
    print_table,
    pyinfra,
    raw_ssh,
)

VALUES = ("5m0s", "10m0s")

RAW = """
sed -i 's/^OLLAMA_KEEP_ALIVE=.*/OLLAMA_KEEP_ALIVE="{value}"/' ~/{environment}
systemctl --user restart ollama.service
. ~/{environment}
until curl -sf "http://$OLLAMA_HOST/api/version"; do sleep 0.02; done
"""

PYINFRA = """
from pyinfra import host
from pyinfra.operations import files, server, systemd

written = files.template(
    src="wanted.env.j2",
    dest=f"{{host.data.home}}/{environment}",
    ollama_port=host.data.ollama_port,
    keep_alive=host.data.keep_alive,
)
systemd.service(
    service="ollama.service", restarted=True, user_mode=True, _if=written.did_change
)
url = f"http://127.0.0.1:{{host.data.ollama_port}}/api/version"
server.shell(commands=f"until curl -sf {{url}}; do sleep 0.02; done", _if=written.did_change)
"""

ANSIBLE = """
- hosts: all
  gather_facts: false
  tasks:
    - template: {src: wanted.env.j2, dest: "{{ home }}/ENVIRONMENT"}
      notify: changed
  handlers:
    - listen: changed
      systemd_service: {name: ollama.service, scope: user, state: restarted}
    - listen: changed
      uri: {url: "http://127.0.0.1:{{ ollama_port }}/api/version"}
      register: answer
      until: answer is succeeded
      retries: 100
      delay: 0.02
"""

Tools = dict[str, Callable[[str], Tool]]
"""By its name, what each tool is started with to set a value."""


def tools(made: Rig, with_peers: bool) -> Tools:
    found: Tools = {
        FLOOR: lambda value: raw_ssh(made, RAW.format(environment=ENVIRONMENT, value=value)),
        "fleetctl apply": lambda value: apply(made, value),
        "fleetctl, --settle 0": lambda value: apply(made, value, "--settle", "0"),
    }
    if with_peers:
        write_template(made)
        deploy = PYINFRA.format(environment=ENVIRONMENT)
        play = ANSIBLE.replace("ENVIRONMENT", ENVIRONMENT)
        found["pyinfra"] = lambda value: pyinfra(made, deploy, keep_alive=value)
        found["ansible, tuned"] = lambda value: ansible(made, play, keep_alive=value)
    return found


def apply(made: Rig, value: str, *options: str) -> Tool:
    file = made.folder / f"fleet-{value}.yaml"
    file.write_text(json.dumps(inventory(made, keep_alive=value)))
    command = [FLEETCTL, "apply", "--yes", "-i", str(file), "--serial", "100%"]
    return Tool([*command, "--forks", str(FORKS), *options])


def write_template(made: Rig) -> None:
    """The peers write the very file that fleetctl writes."""
    text = made.machines[0].environment
    text = text.replace(str(made.machines[0].ollama_port), "{{ ollama_port }}")
    (made.folder / "wanted.env.j2").write_text(with_keep_alive(text, "{{ keep_alive }}"))


def with_keep_alive(environment: str, value: str) -> str:
    return re.sub(r'OLLAMA_KEEP_ALIVE="[^"]*"', f'OLLAMA_KEEP_ALIVE="{value}"', environment)


def change(row: Row, tool: Tool, made: Rig, value: str) -> None:
    """One run of a tool, and a check of every machine: the file, the restart and the new value."""
    before = {machine.name: machine.service for machine in made.machines}
    files = {machine.name: with_keep_alive(machine.environment, value) for machine in made.machines}
    measure(row, tool, made.folder)
    for machine in made.machines:
        restarted = machine.service != before[machine.name]
        if not restarted or f" OLLAMA_KEEP_ALIVE:{value} " not in machine.log:
            sys.exit(f"{row.name} did not restart {machine.name} with {value}: {machine.log}")
        if machine.environment != files[machine.name]:
            sys.exit(f"{row.name} wrote another file on {machine.name}: {machine.environment}")


def compare(count: int, rounds: int, with_peers: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, rig(count, Path(folder)) as made:
        converge(made)
        todo = tools(made, with_peers)
        rows = {name: Row(name) for name in todo}
        values = itertools.cycle(VALUES)
        for at in range(rounds + 1):
            for name, tool in todo.items():
                row = rows[name] if at else Row(name)  # the first round warms up
                value = next(values)
                change(row, tool(value), made, value)
        print_table(f"{count} hosts, {rounds} rounds", rows)


def connections(count: int) -> float:
    """SSH connections a node for an apply that changes it, by the log of sshd."""
    with (
        tempfile.TemporaryDirectory() as folder,
        rig(count, Path(folder), log_level="INFO") as made,
    ):
        converge(made)
        before = made.logins
        value = VALUES[0]
        change(Row("fleetctl"), apply(made, value, "--settle", "0"), made, value)
        return (made.logins - before) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[1, 10, 50])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=int, default=10, help="up to how many hosts, peers too")
    options = parser.parse_args()
    for count in options.counts:
        compare(count, options.rounds, with_peers=count <= options.peers)
    print(f"\nSSH connections of fleetctl apply: {connections(3):g} a node")


if __name__ == "__main__":
    main()
