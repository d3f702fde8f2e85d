"""The SSH server of a simulated machine, on loopback. Strict: public keys only (unless a password
was set), one command only, tunnels only to the machine's own ports. Everything else is refused and
recorded."""

import contextlib
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)
from paramiko.server import InteractiveQuery

from fleetsim.channels import (
    DISCONNECTED,
    POLL_MILLISECONDS,
    carry_command,
    carry_tunnel,
    start_thread,
)
from fleetsim.processes import Account, start_process

COMMAND = b"/bin/sh -s"
_LOG = "fleetsim.sshd"
# disconnecting clients are normal; paramiko must not print them into the output of a demo
logging.getLogger(_LOG).addHandler(logging.NullHandler())
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(slots=True)
class Passwords:
    """The accepted password, if any, how it is asked for, and which passwords were tried."""

    accepted: str | None = None
    method: Literal["password", "keyboard-interactive"] = "password"
    tried: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Login:
    """Who may log in, and the environment of a session."""

    user: str
    authorized_keys: Path
    passwords: Passwords
    account: Account
    environment: dict[str, str]
    home: str
    replaced_paths: Mapping[bytes, bytes]
    """Paths in what a client sends, and what they are replaced with."""


@dataclass(frozen=True, slots=True)
class Events:
    """Callbacks to the machine."""

    refuse: Callable[[str], None]
    opened: Callable[[], None]
    closed: Callable[[], None]
    tunnel_port: Callable[[int], int | None]
    """Maps a port of the machine to a port of this host's loopback; None if the machine has no such
    port."""


class SshServer:
    def __init__(self, login: Login, key: paramiko.PKey, events: Events, port: int = 0) -> None:
        self._login = login
        self._key = key
        self._events = events
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[paramiko.Transport] = set()
        start_thread(self._accept)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._connections):
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            start_thread(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(client)
        transport.set_log_channel(_LOG)
        transport.add_server_key(self._key)
        self._connections.add(transport)
        connection = _Connection(self._login, self._events)
        channels: list[paramiko.Channel] = []  # paramiko itself keeps only weak references
        # the client may disconnect during the handshake
        with contextlib.suppress(*DISCONNECTED):
            transport.start_server(server=connection)
            while transport.is_active():
                if channel := transport.accept(POLL_MILLISECONDS / 1000):
                    channels = [*(one for one in channels if not one.closed), channel]
                    connection.channel_opened(channel)
        transport.close()
        self._connections.discard(transport)
        connection.end()


class _Connection(paramiko.ServerInterface):
    def __init__(self, login: Login, events: Events) -> None:
        self._login = login
        self._events = events
        self._tunnels: dict[int, socket.socket] = {}
        self._logged_in = False
        self._asked = ""

    def end(self) -> None:
        if self._logged_in:
            self._events.closed()

    # --- authentication ---

    def get_allowed_auths(self, username: str) -> str:
        passwords = self._login.passwords
        return "publickey" if passwords.accepted is None else f"publickey,{passwords.method}"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        file = self._login.authorized_keys
        lines = file.read_text().splitlines() if file.exists() else []
        known = {word for line in lines if not line.startswith("#") for word in line.split()}
        return self._enter(username == self._login.user and key.get_base64() in known)

    def check_auth_password(self, username: str, password: str) -> int:
        if self._login.passwords.method != "password":
            return AUTH_FAILED
        return self._enter(self._is_right(username, password))

    def check_auth_interactive(self, username: str, submethods: str) -> int | InteractiveQuery:
        passwords = self._login.passwords
        if passwords.accepted is None or passwords.method != "keyboard-interactive":
            return AUTH_FAILED
        self._asked = username
        return InteractiveQuery("", "", ("Password: ", False))

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        return self._enter(self._is_right(self._asked, *responses))

    def _is_right(self, username: str, password: str) -> bool:
        passwords = self._login.passwords
        passwords.tried.append(password)
        return username == self._login.user and password == passwords.accepted

    def _enter(self, may: bool) -> int:
        if may and not self._logged_in:
            self._logged_in = True
            self._events.opened()
        return AUTH_SUCCESSFUL if may else AUTH_FAILED

    # --- channel requests ---

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind == "session":
            return OPEN_SUCCEEDED
        self._events.refuse(f"ssh: channel of kind {kind}")
        return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if command != COMMAND:
            self._events.refuse(f"ssh: command {command!r}")
            return False
        start_thread(self._run, channel)
        return True

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        return self._refuse("shell")

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        return self._refuse(f"subsystem {name}")

    def check_channel_pty_request(
        self,
        channel: paramiko.Channel,
        term: bytes,
        width: int,
        height: int,
        pixelwidth: int,
        pixelheight: int,
        modes: bytes,
    ) -> bool:
        return self._refuse("pty")

    def check_channel_env_request(
        self, channel: paramiko.Channel, name: bytes, value: bytes
    ) -> bool:
        return self._refuse(f"env {name!r}")

    def check_port_forward_request(self, address: str, port: int) -> int:
        self._refuse(f"remote forwarding of {address}:{port}")
        return 0

    def _refuse(self, what: str) -> bool:
        self._events.refuse(f"ssh: {what}")
        return False

    # --- tunnels ---

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        host, port = destination
        if host not in _LOOPBACK:
            self._events.refuse(f"ssh: tunnel to {host}:{port}")
            return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        target = self._events.tunnel_port(port)
        if target is None:
            return OPEN_FAILED_CONNECT_FAILED
        try:
            self._tunnels[chanid] = socket.create_connection(("127.0.0.1", target), timeout=5)
        except OSError:
            return OPEN_FAILED_CONNECT_FAILED
        return OPEN_SUCCEEDED

    def channel_opened(self, channel: paramiko.Channel) -> None:
        if target := self._tunnels.pop(channel.get_id(), None):
            carry_tunnel(channel, target)

    # --- the command ---

    def _run(self, channel: paramiko.Channel) -> None:
        login = self._login
        argv = COMMAND.decode().split()
        process = start_process(argv, login.account, login.environment, login.home)
        carry_command(channel, process, login.replaced_paths)
