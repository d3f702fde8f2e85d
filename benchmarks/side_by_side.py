"""Tools that do the same work on the same machines, in turn: how each is started and measured."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from rig import Rig

ROOT = Path(__file__).parents[1]
FLEETCTL = str(Path(sys.executable).with_name("fleetctl"))
FLOOR = "raw ssh"
PEERS = {"pyinfra": "pyinfra==3.10.0", "ansible": "ansible-core==2.19.14"}
FORKS = 50


@dataclass(frozen=True)
class Tool:
    command: list[str]
    stdin: str = ""


@dataclass
class Row:
    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: int = 0


def measure(row: Row, tool: Tool, folder: Path) -> None:
    """Adds wall time, and the CPU time and largest memory of the tool's own processes."""
    # What this shell sets for Python would not be set where the tools are used.
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {"HOME": str(folder), "ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
    (folder / "stdin").write_text(tool.stdin)
    with (folder / "stdin").open() as stdin, (folder / "output").open("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            tool.command, cwd=folder, env={**usual, **environment},
            stdin=stdin, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        row.wall.append(time.perf_counter() - started)
    process.returncode = os.waitstatus_to_exitcode(status)
    row.cpu.append(usage.ru_utime + usage.ru_stime)
    row.memory = max(row.memory, usage.ru_maxrss)
    if process.returncode != 0:
        text = (folder / "output").read_text()
        sys.exit(f"{row.name} ended with {process.returncode}:\n{text[-2000:]}")


def print_table(title: str, rows: dict[str, Row]) -> None:
    """Ratios are taken within a round: what else the machine does then concerns all tools."""
    width = max(len(name) for name in rows) + 2
    print(f"\n{title}, seconds")
    print(f"{'':{width}}{'min':>8}{'median':>8}{'x raw':>8}{'cpu':>8}{'MB':>6}")
    for row in rows.values():
        pairs = zip(row.wall, rows[FLOOR].wall, strict=True)
        ratio = statistics.median(seconds / floor for seconds, floor in pairs)
        print(
            f"{row.name:{width}}{min(row.wall):8.2f}{statistics.median(row.wall):8.2f}{ratio:8.2f}"
            f"{min(row.cpu):8.2f}{row.memory // 1024:6}",
            flush=True,
        )


def converge(made: Rig) -> None:
    """Applies the inventory, so that nothing is left to do."""
    apply = [FLEETCTL, "apply", "--yes", "--serial", "100%", "--settle", "0"]
    measure(Row("fleetctl apply"), Tool(apply), made.folder)


def raw_ssh(made: Rig, script: str) -> Tool:
    """The script on all machines, 50 at a time; what it prints is thrown away."""
    file = made.folder / "script.sh"
    file.write_text(script)
    ssh = (
        f"ssh -F /dev/null -o KexAlgorithms=curve25519-sha256 -i {made.key} "
        f"-o UserKnownHostsFile={made.known_hosts} -p {{}} {made.user}@127.0.0.1 /bin/sh -s"
    )
    command = f"{ssh} <{file} >/dev/null 2>&1"
    ports = "".join(f"{machine.port}\n" for machine in made.machines)
    return Tool(["xargs", f"-P{FORKS}", "-I{}", "sh", "-c", command], ports)


def pyinfra(made: Rig, deploy: str, **data: str) -> Tool:
    common = f"ssh_user='{made.user}', ssh_key='{made.key}', ssh_strict_host_key_checking='no'"
    hosts = "".join(
        f"    ('127.0.0.1-{machine.port}', dict(ssh_hostname='127.0.0.1', "
        f"ssh_port={machine.port}, {common}, "
        f"home='{machine.home}', ollama_port={machine.ollama_port})),\n"
        for machine in made.machines
    )
    (made.folder / "inventory.py").write_text(f"hosts = [\n{hosts}]\n")
    (made.folder / "deploy.py").write_text(deploy)
    program = str(_peer("pyinfra") / "pyinfra")
    options = [f"--data={name}={value}" for name, value in data.items()]
    return Tool([program, "-y", f"--parallel={FORKS}", *options, "inventory.py", "deploy.py"])


def ansible(made: Rig, play: str, **variables: str) -> Tool:
    """Tuned: pipelining, and as many forks as the others.

    It takes `~` for the home of the user, which is not the one of the machine here.
    """
    hosts = "".join(
        f"n{machine.port} ansible_host=127.0.0.1 ansible_port={machine.port} "
        f"home={machine.home} ollama_port={machine.ollama_port}\n"
        for machine in made.machines
    )
    (made.folder / "hosts").write_text(
        f"{hosts}[all:vars]\nansible_python_interpreter=/usr/bin/python3\n"
        f"ansible_user={made.user}\nansible_ssh_private_key_file={made.key}\n"
    )
    (made.folder / "ansible.cfg").write_text(
        f"[defaults]\nforks={FORKS}\nhost_key_checking=false\n[ssh_connection]\npipelining=true\n"
    )
    (made.folder / "play.yaml").write_text(play)
    program = str(_peer("ansible") / "ansible-playbook")
    options = [f"--extra-vars={name}={value}" for name, value in variables.items()]
    return Tool([program, "-i", "hosts", *options, "play.yaml"])


def _peer(name: str) -> Path:
    folder = ROOT / ".cache" / name
    if not (folder / "bin" / name).exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, PEERS[name]], check=True)
    return folder / "bin"
