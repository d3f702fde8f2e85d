"""A run that finds nothing to do: fleetctl beside raw ssh, pyinfra and Ansible.

N real sshd on loopback, all tools in turn, round after round; the ratios are what counts. Raw ssh
sends the very script that fleetctl sends, to 50 hosts at a time, and reads nothing of the answer.
The last line says how the time grows with the number of hosts.

    python benchmarks/noop.py 1 10 100 500 --peers 10
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from rig import MODELS, Rig, rig
from side_by_side import (
    FLEETCTL,
    FLOOR,
    Row,
    Tool,
    ansible,
    converge,
    measure,
    print_table,
    pyinfra,
    raw_ssh,
)

CHECK = "fleetctl check"

PYINFRA = """
from pyinfra import host
from pyinfra.facts.server import Command
from pyinfra.operations import files, server

files.put(src="{folder}/wanted.env", dest=f"{{host.data.home}}/peer.env")
state = host.get_fact(Command, "systemctl --user show ollama.service -p ActiveState")
if "active" not in state:
    server.shell(commands="systemctl --user restart ollama.service")
there = host.get_fact(Command, f"curl -s http://127.0.0.1:{{host.data.ollama_port}}/api/tags")
for model in {models!r}:
    if model not in there:
        server.shell(commands=f"curl -s http://127.0.0.1:{{host.data.ollama_port}}/api/pull")
"""

ANSIBLE = """
- hosts: all
  gather_facts: false
  tasks:
    - copy: {src: wanted.env, dest: "{{ home }}/peer.env"}
    - command: systemctl --user show ollama.service -p ActiveState
      register: unit
      changed_when: "'=active' not in unit.stdout"
    - uri: {url: "http://127.0.0.1:{{ ollama_port }}/api/tags", return_content: true}
      register: answer
      failed_when: "'qwen3' not in answer.content"
"""


def tools(made: Rig, with_peers: bool) -> dict[str, Tool]:
    script = subprocess.run(
        [FLEETCTL, "check", "--print-script"], cwd=made.folder, capture_output=True, text=True
    ).stdout
    found = {FLOOR: raw_ssh(made, script), CHECK: Tool([FLEETCTL, "check"])}
    if with_peers:
        (made.folder / "wanted.env").write_text("OLLAMA_KEEP_ALIVE=-1\n")
        deploy = PYINFRA.format(folder=made.folder, models=MODELS)
        found |= {"pyinfra": pyinfra(made, deploy), "ansible, tuned": ansible(made, ANSIBLE)}
    return found


def compare(count: int, rounds: int, with_peers: bool) -> dict[str, Row]:
    with tempfile.TemporaryDirectory() as folder, rig(count, Path(folder)) as made:
        converge(made)
        todo = tools(made, with_peers)
        rows = {name: Row(name) for name in todo}
        for at in range(rounds + 1):
            for name, tool in todo.items():
                row = rows[name] if at else Row(name)  # the first round warms up
                measure(row, tool, made.folder)
        print_table(f"{count} hosts, {rounds} rounds", rows)
        return rows


def growth(few: int, many: int, rows: dict[int, dict[str, Row]]) -> str:
    """Linear is as many times as long as there are times as many hosts."""
    times = [
        f"{name} {min(rows[many][name].wall) / min(rows[few][name].wall):.1f} x"
        for name in (FLOOR, CHECK)
    ]
    return f"{few} to {many} hosts, {many / few:.0f} x as many: {', '.join(times)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[1, 10, 100, 500])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=int, default=10, help="up to how many hosts, peers too")
    options = parser.parse_args()
    rows = {
        count: compare(count, options.rounds, with_peers=count <= options.peers)
        for count in options.counts
    }
    *_, few, many = [0, *sorted(options.counts)]
    if few:
        print(f"\n{growth(few, many, rows)}")


if __name__ == "__main__":
    main()
