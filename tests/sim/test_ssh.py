"""The SSH server of a simulated machine: what it accepts and what it refuses."""

import socket
from functools import partial
from pathlib import Path
from typing import Literal

import paramiko
import pytest

from fleetsim.fleet import Fleet
from fleetsim.keys import make_key
from fleetsim.machine import Machine
from tests.sim.remote import Run, alive, connect, eventually, execute, listens


def take_refusals(machine: Machine) -> list[str]:
    """Return the recorded refusals and clear them, so that the fixture does not fail the test."""
    found = machine.refusals()
    (machine.folder / "refused.log").write_text("")
    return found


def test_script_on_stdin_has_separate_streams_and_an_exit_code(run: Run) -> None:
    result = run("echo out; echo err >&2; exit 7")
    assert (result.out, result.err, result.code) == ("out\n", "err\n", 7)


def test_death_by_signal_is_reported_as_by_a_shell(run: Run) -> None:
    assert run("kill -9 $$").code == 137


def test_session_has_the_identity_of_its_machine(run: Run, machine: Machine) -> None:
    result = run('echo "$HOME"; pwd; id -un; uname -s; hostname; env | cut -d= -f1 | sort')
    home, folder, user, system, host, *variables = result.out.split()
    assert (home, folder) == (str(machine.home), str(machine.home))
    assert (user, system, host) == ("ada", "Linux", "workstation")
    assert variables == [
        "DBUS_SESSION_BUS_ADDRESS",
        "HOME",
        "LANG",
        "LOGNAME",
        "PATH",
        "PWD",
        "SHELL",
        "SSH_CONNECTION",
        "USER",
        "XDG_RUNTIME_DIR",
    ]


def test_session_is_never_root(run: Run) -> None:
    result = run("cat /proc/self/status; touch /etc/fleetctl-sim 2>&1; touch $HOME/mine && echo ok")
    uids = next(line for line in result.out.splitlines() if line.startswith("Uid:")).split()[1:]
    assert "0" not in uids
    assert not Path("/etc/fleetctl-sim").exists()
    assert result.out.endswith("ok\n")


def test_sudo_is_not_found(run: Run) -> None:
    assert run("sudo -n true").code == 127


def test_large_input_and_output_arrive_complete(machine: Machine) -> None:
    data = bytes(range(256)) * 8192
    with connect(machine) as client:
        stdin, stdout, _ = client.exec_command("/bin/sh -s")
        stdin.write("echo ready; exec cat\n")
        assert stdout.readline() == "ready\n"
        stdin.write(data)
        stdin.channel.shutdown_write()
        assert stdout.read() == data


def test_two_scripts_run_at_once_in_one_connection(machine: Machine) -> None:
    with connect(machine) as client:
        streams = [client.exec_command("/bin/sh -s") for _ in range(2)]
        for stdin, stdout, _ in streams:
            stdin.write("{ echo ready; read line; echo got $line; exit; }\n")
            assert stdout.readline() == "ready\n"
        for number, (stdin, _, _) in reversed(list(enumerate(streams))):
            stdin.write(f"{number}\n")
        assert [out.readline() for _, out, _ in streams] == ["got 0\n", "got 1\n"]


def test_dropped_connection_ends_the_input_but_not_the_script(run: Run, machine: Machine) -> None:
    with connect(machine) as client:
        stdin, stdout, _ = client.exec_command("/bin/sh -s")
        stdin.write("trap '' PIPE HUP; echo $$; cat; echo lost 2>/dev/null; echo $? >$HOME/end\n")
        pid = int(stdout.readline())
        transport = client.get_transport()
        assert transport is not None
        transport.sock.close()
        eventually((machine.home / "end").exists)
    eventually(lambda: not alive(pid))
    assert (machine.home / "end").read_text() != "0\n", "writing its output fails"


def test_background_process_outlives_the_session_but_not_the_machine(
    run: Run, machine: Machine
) -> None:
    pid = int(run("sleep 600 >/dev/null 2>&1 </dev/null & echo $!").out)
    assert alive(pid)
    assert pid in machine.processes()
    machine.stop()
    assert not alive(pid)


@pytest.mark.parametrize("command", ["/bin/sh", "/bin/sh -s ", "id", "sudo -n /bin/sh -s"])
def test_any_other_command_is_refused_and_recorded(machine: Machine, command: str) -> None:
    with connect(machine) as client, pytest.raises(paramiko.SSHException):
        client.exec_command(command)
    assert take_refusals(machine) == [f"ssh: command {command.encode()!r}"]


def test_shell_terminal_sftp_and_variables_are_refused_and_recorded(machine: Machine) -> None:
    with connect(machine) as client:
        transport = client.get_transport()
        assert transport is not None
        for ask in ("invoke_shell", "get_pty", "sftp", "env"):
            channel = transport.open_session()
            with pytest.raises(paramiko.SSHException):
                match ask:
                    case "sftp":
                        channel.invoke_subsystem("sftp")
                    case "env":
                        channel.set_environment_variable("LANG", "C")
                        channel.exec_command("id")
                    case _:
                        getattr(channel, ask)()
    recorded = take_refusals(machine)
    assert recorded[:3] == ["ssh: shell", "ssh: pty", "ssh: subsystem sftp"]
    assert "ssh: env b'LANG'" in recorded


def test_password_wrong_user_and_foreign_key_do_not_log_in(
    machine: Machine, tmp_path: Path
) -> None:
    make_key(tmp_path / "key")
    attempts: list[dict[str, str]] = [
        {"username": "ada", "password": "secret"},
        {"username": "root", "key_filename": str(machine.identity_file)},
        {"username": "ada", "key_filename": str(tmp_path / "key")},
    ]
    for attempt in attempts:
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        with pytest.raises(paramiko.AuthenticationException):
            client.connect(
                machine.host,
                machine.port,
                allow_agent=False,
                look_for_keys=False,
                **attempt,  # type: ignore[arg-type]
            )


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_only_the_configured_password_logs_in(
    machine: Machine, method: Literal["password", "keyboard-interactive"]
) -> None:
    machine.passwords.accepted, machine.passwords.method = "secret", method

    def log_in(password: str, user: str = "ada") -> str:
        with paramiko.SSHClient() as client:
            client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
            client.connect(
                machine.host, machine.port, user, password, allow_agent=False, look_for_keys=False
            )
            return execute(client, "id -un").out

    assert log_in("secret") == "ada\n"
    with pytest.raises(paramiko.AuthenticationException):
        log_in("Secret")
    with pytest.raises(paramiko.AuthenticationException):
        log_in("secret", "root")
    assert machine.passwords.tried == ["secret", "Secret", "secret"]


class TestTunnel:
    def ask(self, client: paramiko.SSHClient, port: int, host: str = "127.0.0.1") -> bytes:
        transport = client.get_transport()
        assert transport is not None
        channel = transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0))
        channel.sendall(b"GET /api/version HTTP/1.1\r\nHost: x.local\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := channel.recv(65536):
            answer += part
        return answer

    def test_default_port_of_the_machine_is_its_own_ollama(
        self, fleet: Fleet, machine: Machine
    ) -> None:
        other = fleet.linux("other")
        other.behave(version="9.9.9")
        for one, version in ((machine, b"0.24.0"), (other, b"9.9.9")):
            with connect(one) as client:
                eventually(partial(listens, one))
                assert version in self.ask(client, 11434)
                assert version in self.ask(client, one.ollama_port)

    def test_ports_of_other_machines_are_closed(self, fleet: Fleet, machine: Machine) -> None:
        other = fleet.linux("other")
        eventually(lambda: listens(other))
        with connect(machine) as client, pytest.raises(paramiko.ChannelException) as failure:
            self.ask(client, other.ollama_port)
        assert failure.value.code == 2

    def test_other_hosts_are_refused_and_recorded(self, machine: Machine) -> None:
        with connect(machine) as client, pytest.raises(paramiko.ChannelException):
            self.ask(client, 80, host="192.0.2.1")
        assert take_refusals(machine) == ["ssh: tunnel to 192.0.2.1:80"]


def test_host_key_survives_a_reboot(machine: Machine) -> None:
    before = (machine.host_key, machine.port, machine.fingerprint)
    machine.reboot()
    assert (machine.host_key, machine.port, machine.fingerprint) == before
    with connect(machine) as client:
        assert execute(client, "echo back").out == "back\n"


def test_silent_client_does_not_block_other_handshakes(machine: Machine) -> None:
    with socket.create_connection((machine.host, machine.port)), connect(machine) as client:
        assert execute(client, "echo in").out == "in\n"
