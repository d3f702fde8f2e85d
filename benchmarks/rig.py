"""N machines to measure on: real sshd processes on loopback, each with a HOME of its own.

A machine has two models and one service, a process with the environment of a file, which
`machine/systemctl` restarts and `machine/server.py` is. All tools are measured on the same work. As
root each machine also has processes of its own, or every one would have to look at all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODELS = ["qwen3:latest", "qwen2.5-coder:7b"]
VARIABLES = {
    "OLLAMA_CONTEXT_LENGTH": "8192",
    "OLLAMA_KEEP_ALIVE": "-1",
    "OLLAMA_MAX_LOADED_MODELS": "2",
    "OLLAMA_NO_CLOUD": "1",
    "OLLAMA_NUM_PARALLEL": "1",
}
ENVIRONMENT = ".config/fleetctl/ollama.env"
"""The environment file of the service, below a machine's HOME."""

_TOOLS = Path(__file__).with_name("machine")
_TO_OLLAMA = 10000
"""From the SSH port of a machine to the port of its Ollama."""


@dataclass(frozen=True)
class Machine:
    name: str
    port: int
    home: Path
    process: subprocess.Popen[bytes]

    @property
    def ollama_port(self) -> int:
        return self.port + _TO_OLLAMA

    @property
    def service(self) -> tuple[int, str]:
        """The process of its service, and the name of that start."""
        pid, run = (self.home / "main").read_text().split()
        return int(pid), run

    @property
    def environment(self) -> str:
        """The file with the environment of its service."""
        return (self.home / ENVIRONMENT).read_text()

    @property
    def log(self) -> str:
        """What the service has printed since its last start."""
        return (self.home / "journal" / self.service[1]).read_text()


@dataclass(frozen=True)
class Rig:
    folder: Path
    machines: list[Machine]
    key: Path
    user: str

    @property
    def known_hosts(self) -> Path:
        return self.folder / ".fleetctl" / "known_hosts"

    @property
    def logins(self) -> int:
        """How many SSH connections were made so far; with the log level INFO or higher."""
        return (self.folder / "sshd.log").read_text().count("Accepted publickey")


@contextmanager
def rig(
    count: int, folder: Path, first_port: int = 20000, log_level: str = "ERROR"
) -> Iterator[Rig]:
    machines: list[Machine] = []
    try:
        yield _rig(count, folder, first_port, log_level, machines)
    finally:
        for machine in machines:
            machine.process.kill()  # `unshare` takes no other signal, and its machine ends with it
            if os.geteuid() != 0:
                os.kill(machine.service[0], signal.SIGTERM)
        for machine in machines:
            machine.process.wait()


def inventory(made: Rig, **ollama: str) -> dict[str, object]:
    """Describes the machines as they are, but for the given settings of Ollama."""
    nodes = {
        machine.name: {
            "ssh": {"host": "127.0.0.1", "port": machine.port},
            "endpoint": f"http://127.0.0.1:{machine.ollama_port}",
            "ollama": {"host": f"127.0.0.1:{machine.ollama_port}", **ollama},
        }
        for machine in made.machines
    }
    models = {
        f"model-{at}": {"nodes": list(nodes), "ollama_model": name, "context": 8192}
        for at, name in enumerate(MODELS)
    }
    ssh = {"user": made.user, "identity_file": str(made.key)}
    return {"defaults": {"ssh": ssh}, "nodes": nodes, "models": models}


def _rig(count: int, folder: Path, first_port: int, log_level: str, machines: list[Machine]) -> Rig:
    for name in ("key", "host"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(make, check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd of root separates privileges
    for at in range(count):
        machines.append(_machine(f"node-{at}", first_port + at, folder, log_level))
    public = " ".join((folder / "host.pub").read_text().split()[:2])
    made = Rig(folder, machines, folder / "key", os.environ.get("USER", "root"))
    made.known_hosts.parent.mkdir()
    made.known_hosts.write_text(
        "".join(f"[127.0.0.1]:{machine.port} {public}\n" for machine in machines)
    )
    (folder / "fleet.yaml").write_text(json.dumps(inventory(made)))
    for machine in machines:
        _wait_for(machine.port)
        _wait_for(machine.ollama_port)
    return made


def _machine(name: str, port: int, folder: Path, log_level: str) -> Machine:
    home = folder / name
    (home / "journal").mkdir(parents=True)
    (home / ENVIRONMENT).parent.mkdir(parents=True)
    values = {"OLLAMA_HOST": f"127.0.0.1:{port + _TO_OLLAMA}", **VARIABLES}
    (home / ENVIRONMENT).write_text("".join(f"{name}={values[name]}\n" for name in values))
    (home / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nPermitRootLogin yes\n"
        f"MaxStartups 1000\nLogLevel {log_level}\nSubsystem sftp internal-sftp\n"
        f"SetEnv HOME={home} PATH={_TOOLS}:/usr/bin:/bin XDG_RUNTIME_DIR={home}\n"
    )
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin") or "sshd"
    start = f"{_TOOLS}/systemctl --user start ollama.service; exec {sshd} -D -e -f {home}/config"
    # a killed benchmark leaves no machines behind
    alone = ["setpriv", "--pdeathsig", "KILL"]
    alone += ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with (folder / "sshd.log").open("ab") as log:
        process = subprocess.Popen(
            [*(alone if os.geteuid() == 0 else []), "sh", "-c", start],
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
            stderr=log,
        )
    return Machine(name, port, home, process)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")
