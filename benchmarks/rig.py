"""N machines to measure on: real sshd processes on loopback, each with a HOME of its own.

Every machine is as desired: environment as wanted, service running, two models present. What its
`systemctl` and `journalctl` answer is fixed, so that all tools are measured on the same work. As
root each machine also has processes of its own, or every one would have to look at all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
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

_SYSTEMCTL = """#!/bin/sh
case "$*" in
  *--user*) ;;
  *) echo LoadState=not-found; exit 0;;
esac
cat <<END
LoadState=loaded
ActiveState=active
UnitFileState=enabled
FragmentPath=$HOME/.config/systemd/user/ollama.service
DropInPaths=$HOME/.config/systemd/user/ollama.service.d/zz-fleetctl.conf
EnvironmentFiles=$HOME/.config/fleetctl/ollama.env (ignore_errors=yes)
MainPID=$(cat {home}/pid)
User=
InvocationID=0
NRestarts=0
NeedDaemonReload=no
END
"""


@dataclass(frozen=True)
class Machine:
    name: str
    port: int
    home: Path
    process: subprocess.Popen[bytes]


@dataclass(frozen=True)
class Rig:
    folder: Path
    machines: list[Machine]
    key: Path
    ollama_port: int
    user: str

    @property
    def known_hosts(self) -> Path:
        return self.folder / ".fleetctl" / "known_hosts"


@contextmanager
def rig(count: int, folder: Path, first_port: int = 20000) -> Iterator[Rig]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield _rig(count, folder, first_port, started)
    finally:
        for process in started:
            process.kill()  # `unshare` takes no other signal, and its machine ends with it
        for process in started:
            process.wait()


def _rig(count: int, folder: Path, first_port: int, started: list[subprocess.Popen[bytes]]) -> Rig:
    for name in ("key", "host"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(make, check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd of root separates privileges
    port = _ollama(started)
    variables = {"OLLAMA_HOST": f"127.0.0.1:{port}", **VARIABLES}
    machines = [
        _machine(f"node-{at}", first_port + at, folder, variables, started) for at in range(count)
    ]
    public = " ".join((folder / "host.pub").read_text().split()[:2])
    made = Rig(folder, machines, folder / "key", port, os.environ.get("USER", "root"))
    made.known_hosts.parent.mkdir()
    made.known_hosts.write_text(
        "".join(f"[127.0.0.1]:{machine.port} {public}\n" for machine in machines)
    )
    (folder / "fleet.yaml").write_text(json.dumps(_inventory(made, variables)))
    for machine in machines:
        _wait_for(machine.port)
    return made


_ANSWERS = """
import asyncio, sys

async def serve(reader, writer):
    while line := await reader.readline():
        while await reader.readline() not in (b"\\r\\n", b""):
            pass
        body = {answers!r}.get(line.split()[1], b"{{}}")
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    writer.close()

async def main():
    port = int(sys.argv[1])
    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=1000) as server:
        await server.serve_forever()

asyncio.run(main())
"""


def _ollama(started: list[subprocess.Popen[bytes]]) -> int:
    """One server for all machines, as quick as can be: it is not what is measured."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    models = [{"name": model, "digest": "0"} for model in MODELS]
    answers = {
        b"/api/version": b'{"version": "0.24.0"}',
        b"/api/tags": json.dumps({"models": models}).encode(),
    }
    program = _ANSWERS.format(answers=answers)
    started.append(subprocess.Popen([sys.executable, "-c", program, str(port)]))
    _wait_for(port)
    return port


def _machine(
    name: str,
    port: int,
    folder: Path,
    variables: dict[str, str],
    started: list[subprocess.Popen[bytes]],
) -> Machine:
    home = folder / name
    tools = home / "bin"
    tools.mkdir(parents=True)
    shown = " ".join(f"{key}:{value}" for key, value in sorted(variables.items()))
    line = f'msg="server config" env="map[{shown}]"'
    for tool, text in {
        "systemctl": _SYSTEMCTL.format(home=home),
        "journalctl": f"#!/bin/sh\necho '{line}'\n",
    }.items():
        (tools / tool).write_text(text)
        (tools / tool).chmod(0o755)
    (home / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nPermitRootLogin yes\n"
        f"MaxStartups 1000\nLogLevel ERROR\nSubsystem sftp internal-sftp\n"
        f"SetEnv HOME={home} PATH={tools}:/usr/bin:/bin XDG_RUNTIME_DIR={home}\n"
    )
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin") or "sshd"
    values = " ".join(f"{key}={value}" for key, value in variables.items())
    start = (
        f"env -i {values} sleep 100000 & echo $! >{home}/pid; exec {sshd} -D -e -f {home}/config"
    )
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with (folder / "sshd.log").open("ab") as log:
        process = subprocess.Popen(
            [*(alone if os.geteuid() == 0 else []), "sh", "-c", start], stderr=log
        )
    started.append(process)
    return Machine(name, port, home, process)


def _inventory(made: Rig, variables: dict[str, str]) -> dict[str, object]:
    nodes = {
        machine.name: {
            "ssh": {"host": "127.0.0.1", "port": machine.port},
            "endpoint": f"http://127.0.0.1:{made.ollama_port}",
            "ollama": {"host": variables["OLLAMA_HOST"]},
        }
        for machine in made.machines
    }
    models = {
        f"model-{at}": {"nodes": list(nodes), "ollama_model": name, "context": 8192}
        for at, name in enumerate(MODELS)
    }
    ssh = {"user": made.user, "identity_file": str(made.key)}
    return {"defaults": {"ssh": ssh}, "nodes": nodes, "models": models}


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")
