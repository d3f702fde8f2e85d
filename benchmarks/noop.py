"""A run that finds nothing to do: fleetctl beside raw ssh, pyinfra and Ansible.

N real sshd on loopback, all tools in turn, round after round; the ratios are what counts. Raw ssh
sends the very script that fleetctl sends, to 50 hosts at a time, and reads nothing of the answer.
The last line says how the time grows with the number of hosts.

    python benchmarks/noop.py 1 10 100 500 --peers 10
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rig import MODELS, Rig, rig

ROOT = Path(__file__).parents[1]
PEERS = {"pyinfra": "pyinfra==3.10.0", "ansible": "ansible-core==2.19.14"}

PYINFRA = """
from pyinfra import host
from pyinfra.facts.server import Command
from pyinfra.operations import files, server

files.put(src="{folder}/wanted.env", dest=host.get_fact(Command, "echo $HOME") + "/peer.env")
state = host.get_fact(Command, "systemctl --user show ollama.service -p ActiveState")
if "active" not in state:
    server.shell(commands="systemctl --user restart ollama.service")
there = host.get_fact(Command, "curl -s http://127.0.0.1:{port}/api/tags")
for model in {models!r}:
    if model not in there:
        server.shell(commands="curl -s http://127.0.0.1:{port}/api/pull")
"""

ANSIBLE = """
- hosts: all
  gather_facts: false
  tasks:
    - copy: {{src: {folder}/wanted.env, dest: ~/peer.env}}
    - command: systemctl --user show ollama.service -p ActiveState
      register: unit
      changed_when: "'=active' not in unit.stdout"
    - uri: {{url: "http://127.0.0.1:{port}/api/tags", return_content: true}}
      register: answer
      failed_when: "'qwen3' not in answer.content"
"""


@dataclass
class Row:
    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: int = 0


def measured(row: Row, command: list[str], folder: Path, stdin: str = "") -> None:
    """Wall time, and the CPU time and largest memory of the tool's own processes."""
    # What this shell sets for Python would not be set where the tools are used.
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {"HOME": str(folder), "ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
    (folder / "stdin").write_text(stdin)
    with (folder / "stdin").open() as given, (folder / "said").open("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env={**usual, **environment},
            stdin=given, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        row.wall.append(time.perf_counter() - started)
    process.returncode = os.waitstatus_to_exitcode(status)
    row.cpu.append(usage.ru_utime + usage.ru_stime)
    row.memory = max(row.memory, usage.ru_maxrss)
    if process.returncode != 0:
        text = (folder / "said").read_text()
        sys.exit(f"{row.name} ended with {process.returncode}:\n{text[-2000:]}")


def peer(name: str) -> Path:
    folder = ROOT / ".cache" / name
    if not (folder / "bin" / name).exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, PEERS[name]], check=True)
    return folder / "bin"


def converge(made: Rig) -> None:
    """Puts the files that the plan says, so that nothing is left to do."""
    fleetctl = [str(Path(sys.executable).with_name("fleetctl")), "check", "--json"]
    said = subprocess.run(fleetctl, cwd=made.folder, capture_output=True, text=True).stdout
    for name, node in json.loads(said)["nodes"].items():
        for change in node["changes"]:
            if "diff" in change:
                file = Path(change["path"].replace("~", str(made.folder / name), 1))
                file.parent.mkdir(parents=True, exist_ok=True)
                lines = [line[1:] for line in change["diff"] if line.startswith("+")]
                file.write_text("".join(f"{line}\n" for line in lines))


def commands(made: Rig, with_peers: bool) -> dict[str, tuple[list[str], str]]:
    """What each tool is started with, and what it gets on standard input."""
    folder = made.folder
    fleetctl = str(Path(sys.executable).with_name("fleetctl"))
    script = subprocess.run(
        [fleetctl, "check", "--print-script"], cwd=folder, capture_output=True, text=True
    ).stdout
    (folder / "script.sh").write_text(script)
    ssh = (
        f"ssh -F /dev/null -o KexAlgorithms=curve25519-sha256 -i {made.key} "
        f"-o UserKnownHostsFile={made.known_hosts} -p {{}} {made.user}@127.0.0.1 /bin/sh -s"
    )
    raw = ["xargs", "-P50", "-I{}", "sh", "-c", f"{ssh} <{folder}/script.sh >/dev/null 2>&1"]
    ports = "".join(f"{machine.port}\n" for machine in made.machines)
    rows = {"raw ssh": (raw, ports), "fleetctl check": ([fleetctl, "check"], "")}
    if with_peers:
        rows |= peer_commands(made)
    return rows


def peer_commands(made: Rig) -> dict[str, tuple[list[str], str]]:
    folder, port = made.folder, made.ollama_port
    (folder / "wanted.env").write_text("OLLAMA_KEEP_ALIVE=-1\n")
    (folder / "deploy.py").write_text(PYINFRA.format(folder=folder, port=port, models=MODELS))
    (folder / "play.yaml").write_text(ANSIBLE.format(folder=folder, port=port))
    common = f"ssh_user='{made.user}', ssh_key='{made.key}', ssh_strict_host_key_checking='no'"
    hosts = "".join(
        f"    ('127.0.0.1-{machine.port}', dict(ssh_hostname='127.0.0.1', "
        f"ssh_port={machine.port}, {common})),\n"
        for machine in made.machines
    )
    (folder / "inventory.py").write_text(f"hosts = [\n{hosts}]\n")
    lines = "".join(
        f"n{machine.port} ansible_host=127.0.0.1 ansible_port={machine.port}\n"
        for machine in made.machines
    )
    settings = f"ansible_user={made.user} ansible_ssh_private_key_file={made.key}"
    (folder / "hosts").write_text(
        f"{lines}[all:vars]\nansible_python_interpreter=/usr/bin/python3\n"
        + settings.replace(" ", "\n")
    )
    (folder / "ansible.cfg").write_text(
        "[defaults]\nforks=50\nhost_key_checking=false\n[ssh_connection]\npipelining=true\n"
    )
    return {
        "pyinfra": ([str(peer("pyinfra") / "pyinfra"), "-y", "inventory.py", "deploy.py"], ""),
        "ansible, tuned": (
            [str(peer("ansible") / "ansible-playbook"), "-i", "hosts", "play.yaml"],
            "",
        ),
    }


def compare(count: int, rounds: int, with_peers: bool) -> dict[str, Row]:
    with tempfile.TemporaryDirectory() as folder, rig(count, Path(folder)) as made:
        converge(made)
        todo = commands(made, with_peers)
        rows = {name: Row(name) for name in todo}
        for at in range(rounds + 1):
            for name, (command, stdin) in todo.items():
                row = rows[name] if at else Row(name)  # the first round warms up
                measured(row, command, made.folder, stdin)
        print(f"\n{count} hosts, {rounds} rounds, seconds")
        print(f"{'':18}{'min':>8}{'median':>8}{'x raw':>8}{'cpu':>8}{'MB':>6}")
        for row in rows.values():
            pairs = zip(row.wall, rows["raw ssh"].wall, strict=True)
            ratio = statistics.median(ours / raw for ours, raw in pairs)
            print(
                f"{row.name:18}{min(row.wall):8.2f}{statistics.median(row.wall):8.2f}{ratio:8.2f}"
                f"{min(row.cpu):8.2f}{row.memory // 1024:6}"
            )
        return rows


def growth(few: int, many: int, rows: dict[int, dict[str, Row]]) -> str:
    """Linear is as many times as long as there are times as many hosts."""
    said = [
        f"{name} {min(rows[many][name].wall) / min(rows[few][name].wall):.1f} x"
        for name in ("raw ssh", "fleetctl check")
    ]
    return f"{few} to {many} hosts, {many / few:.0f} x as many: {', '.join(said)}"


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
