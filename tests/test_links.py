"""Connections as users meet them: keys, host keys, ssh_config, jumps, and what goes wrong."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fleetctl.errors import Exit, FleetError
from fleetctl.links import Connector, HostKeys, LocalLink, SshLink, collect, root_shell, transport
from fleetctl.model.fleet import Ssh
from fleetctl.ollama import Client, NoAnswer
from fleetsim.keys import make_key
from fleetsim.machine import Machine
from tests.fleet_fixtures import Project, simulated_project
from tests.test_ollama_api import BROKEN_OFF, Serve, dripping, response, serving


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with simulated_project() as project:
        project.add("box", trusted=False)
        yield project


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with no keys, no configuration and no agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    return tmp_path


@pytest.fixture
def box(project: Project) -> Machine:
    return project.fleet.machines["box"]


def to(machine: Machine, **changes: object) -> Ssh:
    known = {"host": machine.host, "user": machine.user, "port": machine.port}
    return Ssh(**{**known, "identity_file": str(machine.identity_file), **changes})  # type: ignore[arg-type]


def connect(machine: Machine, ssh: Ssh, home: Path, timeout: float = 5) -> SshLink:
    known = home / "known_hosts"
    known.write_text(machine.known_hosts_line + "\n")
    return Connector(HostKeys(known), timeout).connect("box", ssh)


def failure(machine: Machine, ssh: Ssh, home: Path, timeout: float = 5) -> FleetError:
    with pytest.raises(FleetError) as caught:
        connect(machine, ssh, home, timeout)
    return caught.value


def says(link: SshLink | LocalLink, script: str) -> str:
    shell = link.shell()
    shell.send(script.encode())
    shell.end_input()
    return collect(shell, 10)[0].decode()


def test_a_shell_answers(box: Machine, home: Path) -> None:
    link = connect(box, to(box), home)
    assert says(link, "id -un") == "ada\n"
    link.close()


def test_this_machine_is_a_node_without_ssh() -> None:
    assert says(LocalLink(), "echo here; exec cat >&2") == "here\n"


@pytest.mark.parametrize("local", [True, False])
def test_both_streams_are_drained_together(local: bool, box: Machine, home: Path) -> None:
    link = LocalLink() if local else connect(box, to(box), home)
    fill = "head -c {} /dev/zero"
    shell = link.shell()
    shell.send(f"{fill.format(200_000)} >&2 & {fill.format(3_000_000)}; wait\n".encode())
    shell.end_input()
    output, errors = collect(shell, 20)
    assert (len(output), len(errors)) == (3_000_000, 200_000)
    link.close()


@pytest.mark.parametrize(("where", "most"), [("&1", "8 MiB"), ("&2", "0.25 MiB")])
@pytest.mark.parametrize("local", [True, False])
def test_what_prints_without_end_is_cut_off(
    local: bool, where: str, most: str, box: Machine, home: Path
) -> None:
    link = LocalLink() if local else connect(box, to(box), home)
    with pytest.raises(FleetError, match=f"printed more than {most}"):
        says(link, f"while :; do echo {'x' * 50}; done >{where}")
    link.close()


@pytest.mark.parametrize("local", [True, False])
def test_a_script_that_hangs_is_given_up(local: bool, box: Machine, home: Path) -> None:
    link = LocalLink() if local else connect(box, to(box), home)
    shell = link.shell()
    shell.send(b"sleep 60\n")
    with pytest.raises(FleetError, match=r"not answered in 0.3 s") as caught:
        collect(shell, 0.3)
    assert caught.value.exit_code == Exit.UNREACHABLE
    link.close()


SUDO = """#!/bin/sh
[ "$1" != -n ] || {{ {unattended}; shift; exec "$@"; }}
[ "$1 $2 $3 $4" = "-k -S -p " ] || {{ echo "sudo: usage" >&2; exit 1; }}
shift 4
IFS= read -r password
[ "$password" = "{password}" ] || {{ echo "sudo: 1 incorrect password attempt" >&2; exit 1; }}
exec "$@"
"""
REFUSES = "echo 'sudo: a password is required' >&2; exit 1"


@pytest.mark.parametrize(
    ("unattended", "password", "problem"),
    [
        (":", None, None),
        (":", "secret", None),
        (REFUSES, "sec'ret $(id)", None),
        (REFUSES, "wrong", "sudo did not let us in: sudo: 1 incorrect password attempt"),
        (REFUSES, None, "sudo did not let us in: sudo: a password is required"),
    ],
    ids=["not needed", "not needed but given", "right", "wrong", "missing"],
)
def test_a_root_shell_is_started_by_sudo(
    unattended: str,
    password: str | None,
    problem: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    (tools / "sudo").write_text(SUDO.format(unattended=unattended, password="sec'ret \\$(id)"))
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    if problem:
        with pytest.raises(FleetError, match=re.escape(problem)):
            root_shell(LocalLink(), password, 5)
        return
    shell = root_shell(LocalLink(), password, 5)
    shell.send(b"{ echo as root; exec cat; }\n")
    shell.end_input()
    assert collect(shell, 5) == (b"as root\n", b"")


def test_a_shell_that_is_roots_needs_no_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "sudo").write_text("#!/bin/sh\nexit 1\n")
    for tool in ("id", "sudo"):
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    shell = root_shell(LocalLink(), None, 5)
    shell.send(b"echo here\n")
    shell.end_input()
    assert collect(shell, 5) == (b"here\n", b"")


HOSTILE_FABRIC = """
user: mallory
port: 1
gateway: mallory@127.0.0.1:1
forward_agent: true
connect_kwargs: {password: wrong, key_filename: /nonexistent}
timeouts: {connect: 0}
authentication: {strategy_class: NotAClass}
load_ssh_configs: true
"""


def test_configuration_files_of_fabric_change_nothing(
    box: Machine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".fabric.yaml", ".fabric.yml", ".invoke.yaml", "fabric.yaml"):
        (home / name).write_text(HOSTILE_FABRIC)
    monkeypatch.setenv("FABRIC_USER", "mallory")
    monkeypatch.setenv("FABRIC_PORT", "1")
    monkeypatch.chdir(home)
    with closing(connect(box, to(box), home)) as link:
        assert says(link, "id -un") == "ada\n"
        connection = link.connection
        assert (connection.user, connection.port) == (box.user, box.port)
        assert connection.forward_agent is False
        assert not connection.gateway
        assert connection.config.user != "mallory"


def test_connections_have_a_fabric_config_each(box: Machine, home: Path) -> None:
    with closing(connect(box, to(box), home)) as one, closing(connect(box, to(box), home)) as other:
        one.connection.config.run.warn = True
        assert not other.connection.config.run.warn


def test_a_link_is_alive_until_the_connection_ends(box: Machine, home: Path) -> None:
    assert LocalLink().alive
    link = connect(box, to(box), home)
    assert link.alive
    link.connection.transport.sock.close()
    deadline = time.monotonic() + 5
    while link.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not link.alive
    with pytest.raises(FleetError, match="the connection was lost") as caught:
        link.shell()
    assert caught.value.exit_code == Exit.UNREACHABLE
    link.close()
    link.close()


def test_a_paused_link_leaves_its_slot_to_others(box: Machine, home: Path) -> None:
    known = home / "known_hosts"
    known.write_text(box.known_hosts_line + "\n")
    with closing(Connector(HostKeys(known), 5, slots=1)) as connector:
        first = connector.connect("box", to(box))
        first.pause()
        first.pause()
        second = connector.connect("box", to(box))
        resumed = threading.Event()

        def resume() -> None:
            first.resume()
            resumed.set()

        waiting = threading.Thread(target=resume)
        waiting.start()
        assert not resumed.wait(0.3)
        assert says(first, "echo open") == "open\n"
        second.close()
        assert resumed.wait(5)
        waiting.join()
        first.close()
        connector.connect("box", to(box)).close()


def test_a_failed_connection_gives_its_slot_back(box: Machine, home: Path) -> None:
    known = home / "known_hosts"
    known.write_text(box.known_hosts_line + "\n")
    with closing(Connector(HostKeys(known), 5, slots=1)) as connector:
        for _ in range(2):
            with pytest.raises(FleetError, match="was refused"):
                connector.connect("box", to(box, user="mallory"))
        connector.connect("box", to(box)).close()


@pytest.mark.parametrize(
    ("serve", "problem"),
    [
        (dripping(response(b"x" * 1000), 0.01), "/api/version was not answered in 0.8 s"),
        (dripping(b""), "/api/version was not answered in 0.8 s"),
        (lambda connection: connection.sendall(BROKEN_OFF), "/api/version was not answered: "),
    ],
    ids=["drips", "silent", "breaks off"],
)
def test_http_over_ssh_ends_at_its_deadline(
    serve: Serve, problem: str, box: Machine, home: Path
) -> None:
    with serving(serve) as url, closing(connect(box, to(box), home)) as link:
        before = box.behaviour.ports
        box.behave(ports={**before, "11500": int(url.rpartition(":")[2])})
        over = transport(link, 5)
        with Client("http://127.0.0.1:11500", timeout=0.8, transport=over) as api:
            started = time.monotonic()
            with pytest.raises(NoAnswer) as caught:
                api.facts()
            assert time.monotonic() - started < 4
        box.behave(ports=before)
        assert str(caught.value).startswith(problem)
        assert says(link, "echo usable") == "usable\n"


def test_http_over_ssh_to_a_port_where_nothing_listens(box: Machine, home: Path) -> None:
    with (
        closing(connect(box, to(box), home)) as link,
        Client("http://127.0.0.1:11501", timeout=5, transport=transport(link, 5)) as api,
        pytest.raises(NoAnswer, match=r"^nothing answers at 127.0.0.1 port 11501$"),
    ):
        api.facts()


def test_fault_1_a_refused_port(box: Machine, home: Path) -> None:
    error = failure(box, to(box, port=1), home)
    assert error.exit_code == Exit.UNREACHABLE
    assert "127.0.0.1:1 refused the connection" in error.message


def test_fault_4_a_port_that_accepts_and_says_nothing(box: Machine, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failure(box, to(box, port=silent.getsockname()[1]), home, timeout=0.5)
    assert "sent no SSH banner" in error.message
    assert error.exit_code == Exit.UNREACHABLE


def test_fault_6_a_login_that_is_refused_names_the_keys(box: Machine, home: Path) -> None:
    error = failure(box, to(box, user="mallory"), home)
    assert f"login as mallory was refused (tried {box.identity_file})" in error.message
    assert error.hint == f"ssh-copy-id -p {box.port} mallory@127.0.0.1"


def test_fault_7_an_encrypted_key_asks_for_ssh_add(box: Machine, home: Path) -> None:
    key = home / "locked"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(key)]
    subprocess.run(make, check=True)
    error = failure(box, to(box, identity_file=str(key)), home)
    assert f"ssh-add {key}" in error.message


def test_fault_9_an_unknown_host_key(box: Machine, home: Path) -> None:
    with pytest.raises(FleetError) as caught:
        Connector(HostKeys(home / "none"), 5).connect("box", to(box))
    assert caught.value.exit_code == Exit.REFUSED
    assert box.fingerprint in caught.value.message
    assert caught.value.hint is not None
    assert f"fleetctl trust box --fingerprint {box.fingerprint}" in caught.value.hint


def test_fault_10_a_changed_host_key_is_loud(box: Machine, home: Path) -> None:
    known = home / "known_hosts"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "other")], check=True
    )
    kind, key, *_ = (home / "other.pub").read_text().split()
    known.write_text(f"[127.0.0.1]:{box.port} {kind} {key}\n")
    with pytest.raises(FleetError) as caught:
        Connector(HostKeys(known, ask=lambda *_: True), 5).connect("box", to(box))
    assert "HAS CHANGED" in caught.value.message
    assert caught.value.exit_code == Exit.REFUSED
    assert "--replace" in (caught.value.hint or "")


def test_fault_19_a_name_that_does_not_resolve(box: Machine, home: Path) -> None:
    error = failure(box, to(box, host="no-such-host.invalid"), home)
    assert "cannot be resolved" in error.message


def test_a_key_that_a_person_accepts_is_remembered(box: Machine, home: Path) -> None:
    own = home / "project" / "known_hosts"
    asked: list[tuple[str, str]] = []

    def ask(name: str, fingerprint: str) -> bool:
        asked.append((name, fingerprint))
        return True

    for _ in range(2):
        Connector(HostKeys(own, ask), 5).connect("box", to(box)).close()
    assert asked == [(f"[127.0.0.1]:{box.port}", box.fingerprint)]
    assert own.stat().st_mode & 0o777 == 0o600


def test_ssh_config_is_honoured_with_its_includes(box: Machine, home: Path) -> None:
    (home / ".ssh" / "config").write_text("Include more/*\nHost other\n  Port 1\n")
    (home / ".ssh" / "more").mkdir()
    (home / ".ssh" / "more" / "box").write_text(
        f"Host mybox\n  HostName 127.0.0.1\n  Port {box.port}\n  User {box.user}\n"
        f"  IdentityFile {box.identity_file}\nMatch host nothing\n  User nobody\n"
    )
    link = connect(box, Ssh("mybox"), home)
    assert says(link, "id -un") == "ada\n"
    link.close()


RELAY = """
import os, socket, sys, threading
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while data := os.read(0, 65536):
        server.sendall(data)
threading.Thread(target=up, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
"""


@pytest.mark.parametrize(
    "config",
    [
        "Host behind\n  ProxyCommand {python} {folder}/relay.py {port}\n  HostKeyAlias {name}\n",
        'Match exec "test %h = behind"\n  HostName 127.0.0.1\n  Port {port}\n',
        "Host behind\n  HostName localhost\n  Port {port}\n  HostKeyAlias {name}\n",
    ],
    ids=["ProxyCommand", "Match exec", "HostKeyAlias"],
)
def test_what_ssh_config_says_about_the_way_counts(
    config: str, project: Project, box: Machine
) -> None:
    folder, name = project.fleetctl.folder, box.known_hosts_line.split()[0]
    (folder / "relay.py").write_text(RELAY)
    (folder / ".ssh").mkdir(exist_ok=True)
    (folder / ".ssh" / "config").write_text(
        config.format(python=sys.executable, folder=folder, port=box.port, name=name)
    )
    ssh = {"host": "behind", "user": box.user, "identity_file": str(box.identity_file)}
    project.nodes["behind"] = {"ssh": ssh, "endpoint": box.endpoint}
    project.trust(box)
    project.write()
    outcome = project.fleetctl("check", "--limit", "behind")
    del project.nodes["behind"]
    project.write()
    (folder / ".fleetctl" / "known_hosts").unlink()
    outcome.exits(3)


def test_an_ssh_config_that_cannot_be_read_is_the_users_to_mend(box: Machine, home: Path) -> None:
    (home / ".ssh" / "config").write_text("Port\n")
    error = failure(box, to(box), home)
    assert (error.message, error.exit_code) == ("~/.ssh/config: Unparsable line Port", Exit.USAGE)


def test_known_hosts_is_understood_as_ssh_writes_it(box: Machine, home: Path) -> None:
    """Several names on a line, a remark behind it, hashed names, and lines that are not for us."""
    name, kind, key = box.known_hosts_line.split()[:3]
    known = home / "known_hosts"
    right = f"other,{name} {kind} {key} a remark\n"
    known.write_text(f"# mine\n@revoked * {kind} AAAA\n\nnonsense\n|1|x|y {kind} AAAA\n{right}")
    Connector(HostKeys(known), 5).connect("box", to(box)).close()
    known.write_text(right)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert name not in known.read_text()
    Connector(HostKeys(known), 5).connect("box", to(box)).close()
    assert not HostKeys(known).known("another")


def test_a_revoked_host_key_is_refused_though_it_is_known(box: Machine, home: Path) -> None:
    _, kind, key = box.known_hosts_line.split()[:3]
    (home / ".ssh" / "known_hosts").write_text(f"@revoked * {kind} {key}\n")
    error = failure(box, to(box), home)
    assert "IS REVOKED" in error.message
    assert error.exit_code == Exit.REFUSED


def test_a_broken_jump_is_one_message(box: Machine, home: Path) -> None:
    error = failure(box, to(box, jump="nobody@127.0.0.1:1"), home)
    assert error.message == ("the jump host nobody@127.0.0.1:1: 127.0.0.1:1 refused the connection")


def test_trust_wants_one_node_with_ssh(project: Project) -> None:
    for name in ("controller", "nobody", "box,controller,nobody"):
        project.fleetctl("trust", name).exits(2)


def test_trust_asks_for_the_fingerprint_and_keeps_it(project: Project, box: Machine) -> None:
    known = project.fleetctl.folder / ".fleetctl" / "known_hosts"
    fleetctl = project.fleetctl
    assert f"--fingerprint {box.fingerprint}" in fleetctl("trust", "box").exits(8).err
    fleetctl("trust", "box", "--fingerprint", "SHA256:wrong").exits(8)
    assert not known.exists()
    fleetctl("trust", "box", "--fingerprint", box.fingerprint).exits(0)
    assert fleetctl("trust", "box", "--json").exits(0).json["state"] == "known"
    changed = known.read_text().replace("AAAAC3", "AAAAC3", 1)
    kind, key, *_ = (project.fleet.identity_file.with_suffix(".pub")).read_text().split()
    known.write_text(f"[127.0.0.1]:{box.port} {kind} {key}\n")
    assert "HAS CHANGED" in fleetctl("trust", "box", "--fingerprint", box.fingerprint).exits(8).err
    fleetctl("trust", "box", "--replace", "--fingerprint", box.fingerprint).exits(0)
    assert known.read_text() == changed


@contextmanager
def agent_with(*keys: Path) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        agent = Path(folder, "agent")
        with subprocess.Popen(["ssh-agent", "-D", "-a", agent], stdout=subprocess.DEVNULL) as run:
            while not agent.exists():
                time.sleep(0.01)
            patch.setenv("SSH_AUTH_SOCK", str(agent))
            try:
                subprocess.run(["ssh-add", "-q", *keys], check=True)
                yield
            finally:
                run.terminate()


def test_an_agent_with_more_keys_than_the_server_takes_is_named_as_the_reason(
    box: Machine, home: Path
) -> None:
    wrong = [home / f"wrong-{number}" for number in range(12)]
    for file in wrong:
        make_key(file)
    with agent_with(*wrong, box.identity_file):
        error = failure(box, to(box, identity_file=None), home)
        connect(box, to(box), home).close()
    assert f"127.0.0.1:{box.port} hung up during the log-in, perhaps as too many" in error.message
    assert "ssh.identity_file" in str(error.hint)
    assert error.exit_code == Exit.UNREACHABLE


def test_the_key_to_let_in_is_the_one_that_is_offered_first(home: Path) -> None:
    def made(name: str, passphrase: str = "") -> str:
        file = home / name
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(file)]
        subprocess.run(command, check=True)
        return " ".join(file.with_name(f"{file.name}.pub").read_text().split()[:2])

    def key(ssh: Ssh) -> str | None:
        return Connector(HostKeys(home / "known_hosts"), 5).public_key(ssh)

    assert key(Ssh("box")) is None
    usual, named, configured = made(".ssh/id_ecdsa"), made("named"), made("configured")
    made(".ssh/id_ed25519", passphrase="secret")
    (home / ".ssh" / "config").write_text(f"Host mybox\n  IdentityFile {home}/configured\n")
    assert key(Ssh("box")) == usual
    assert key(Ssh("mybox")) == configured
    assert key(Ssh("mybox", identity_file=str(home / "named"))) == named
    assert key(Ssh("box", identity_file=str(home / ".ssh" / "id_ed25519"))) is None
    agents = made("agents")
    with agent_with(home / "agents"):
        assert key(Ssh("box")) == agents
        assert key(Ssh("mybox")) == configured
