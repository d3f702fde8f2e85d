"""Observes a simulated machine from outside, without fleetctl's code."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import paramiko

from fleetsim.machine import Machine


@dataclass(frozen=True, slots=True)
class Result:
    out: str
    err: str
    code: int


Run = Callable[[str], Result]


def connect(machine: Machine) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    kind, key = machine.host_key.split()
    known = client.get_host_keys()
    entry = paramiko.hostkeys.HostKeyEntry.from_line(f"[127.0.0.1]:{machine.port} {kind} {key}")
    assert entry is not None
    assert entry.key is not None
    known.add(f"[127.0.0.1]:{machine.port}", kind, entry.key)
    connection = socket.create_connection((machine.host, machine.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.connect(
        machine.host,
        machine.port,
        sock=connection,
        username=machine.user,
        key_filename=str(machine.identity_file),
        allow_agent=False,
        look_for_keys=False,
    )
    return client


def execute(client: paramiko.SSHClient, script: str) -> Result:
    stdin, stdout, stderr = client.exec_command("/bin/sh -s")
    stdin.write(script)
    stdin.channel.shutdown_write()
    out, err = stdout.read().decode(), stderr.read().decode()
    return Result(out, err, stdout.channel.recv_exit_status())


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def environment_of(pid: int | str) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def eventually(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"did not happen within {seconds} s"
        time.sleep(0.02)


def listens(machine: Machine) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", machine.ollama_port)) == 0


def show(run: Run, name: str) -> str:
    return run(f"systemctl --user show -p {name} --value ollama").out.strip()


def write(machine: Machine, path: str, text: str) -> None:
    file = machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def drop_in(machine: Machine, name: str, *lines: str) -> None:
    folder = ".config/systemd/user/ollama.service.d"
    write(machine, f"{folder}/{name}.conf", "[Service]\n" + "\n".join(lines) + "\n")


def until_answering(*machines: Machine) -> None:
    for machine in machines:
        try:
            eventually(partial(answering, machine), 30)
        except AssertionError as error:
            logs = (file.read_text() for file in machine.home.glob(".ollama/logs/*"))
            raise AssertionError(f"{error}: {machine.processes()} {''.join(logs)}") from None


def answering(machine: Machine) -> bool:
    try:
        return httpx.get(f"{machine.endpoint}/api/version", trust_env=False).is_success
    except httpx.TransportError:
        return False
