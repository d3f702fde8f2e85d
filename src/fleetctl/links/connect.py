"""Opens SSH connections with Fabric: our sockets, our keys, our host key policy.

A jump host is a connection of the same kind, shared by all nodes behind it.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import paramiko
from fabric import Config, Connection

from fleetctl.errors import FleetError
from fleetctl.links.host_keys import HostKeys
from fleetctl.links.login import Keyring, Login, Route, Routes
from fleetctl.links.reasons import explained
from fleetctl.links.ssh import Slot, SshLink, close_connection
from fleetctl.model import address
from fleetctl.model.fleet import Ssh

Check = Callable[[str, str, paramiko.PKey], None]
"""Takes node, known_hosts name and key; raises unless the key is accepted."""

_LOG = logging.getLogger(__name__)
_TRIES = 3

_WEAK = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
_RSA = ["rsa-sha2-512", "rsa-sha2-256"]

# Three TCP keep-alives, five seconds apart, without an acknowledgement end a connection.
_TCP = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}


class Connector:
    """Opens the connections of a run, and holds what they share.

    At most `slots` links are in use at once. A slot is taken when the machine has answered, so
    that dead machines do not delay the others.
    """

    def __init__(self, host_keys: HostKeys, timeout: float, slots: int = 256) -> None:
        self._host_keys = host_keys
        self._keyring = Keyring()
        self._timeout = timeout
        self._slots = threading.Semaphore(slots)
        self._routes = Routes()
        self._jumps: dict[str, _Jump] = {}
        logging.getLogger("paramiko").setLevel(logging.INFO)
        logging.getLogger("paramiko").addHandler(logging.NullHandler())

    def connect(self, node: str, ssh: Ssh, password: str | None = None) -> SshLink:
        """With a password no key is offered to the node; jump hosts are offered keys only."""
        slot = Slot(self._slots)
        try:
            connection = self._open(node, ssh, answered=slot.take, password=password)
        except BaseException:
            slot.release()
            raise
        return SshLink(connection, slot)

    def public_key(self, ssh: Ssh) -> str | None:
        """The key that must be in the node's authorized_keys for `connect` to succeed."""
        return self._keyring.first_public(self._routes.to(ssh).identity_files)

    def host_key(self, node: str, ssh: Ssh) -> tuple[str, paramiko.PKey]:
        """The known_hosts name and the key that a node shows, read without logging in.

        If the key of a jump host on the way is not known, that one is returned.
        """
        try:
            close_connection(self._open(node, ssh, check=_report))
        except _HostKeySeen as seen:
            return seen.name, seen.key
        raise FleetError(f"{ssh.host} showed no host key")

    def close(self) -> None:
        """Close the connections to jump hosts. Links must be closed before."""
        for jump in self._jumps.values():
            if jump.connection:
                close_connection(jump.connection)

    def _report_unknown(self, node: str, name: str, key: paramiko.PKey) -> None:
        if not self._host_keys.knows(name, key):
            _report(node, name, key)

    def _open(
        self,
        node: str,
        ssh: Ssh,
        through: tuple[str, ...] = (),
        check: Check | None = None,
        answered: Callable[[], object] = bool,
        password: str | None = None,
    ) -> Connection:
        """A busy server closes connections early, so that is tried again a little later."""
        route = self._routes.to(ssh)
        jump = None
        if route.jump and route.jump not in through:
            jump = self._jump(node, route.jump, through, self._report_unknown if check else None)
        policy = _StrictPolicy(partial(check or self._host_keys.check, node, route.key_name))
        login = self._keyring.login(route.identity_files, password)
        attempt = 0
        while True:
            attempt += 1
            started = time.monotonic()
            details: deque[str] = deque(maxlen=60)
            try:
                sock = self._socket(route, jump)
                answered()
                started = time.monotonic()
                return self._log_in(route, login, sock, policy, details)
            except (OSError, EOFError, paramiko.SSHException) as error:
                _LOG.debug("%s, try %d: %r %s", route.name, attempt, error, list(details))
                early = time.monotonic() - started < self._timeout / 2
                if attempt == _TRIES or login.once or not (early and _hung_up(error)):
                    raise explained(error, route, login, self._timeout, details) from error
            time.sleep(random.uniform(0.1, 0.4) * attempt)  # noqa: S311  not for secrecy

    def _jump(
        self, node: str, spec: str, through: tuple[str, ...], check: Check | None
    ) -> Connection:
        """All nodes behind a jump host share one connection to it, or one error."""
        *before, last = spec.split(",")
        jump = self._jumps.setdefault(spec, _Jump())
        with jump.lock:
            if jump.error:
                raise jump.error
            if jump.connection is None:
                hop = _hop(last, ",".join(before) or None)
                try:
                    jump.connection = self._open(node, hop, (*through, spec), check)
                except FleetError as error:
                    jump.error = FleetError(
                        f"the jump host {last}: {error.message}",
                        hint=error.hint,
                        exit_code=error.exit_code,
                    )
                    raise jump.error from None
            return jump.connection

    def _socket(self, route: Route, jump: Connection | None) -> Any:
        if jump is not None:
            target = (route.host, route.port)
            return jump.transport.open_channel("direct-tcpip", target, ("", 0))
        if route.proxy_command is not None:
            return paramiko.ProxyCommand(route.proxy_command)
        return _tcp_socket(route.host, route.port, self._timeout)

    def _log_in(
        self,
        route: Route,
        login: Login,
        sock: Any,
        policy: paramiko.MissingHostKeyPolicy,
        details: deque[str],
    ) -> Connection:
        """Fabric reads no file here: `lazy` and `ssh_config` keep its Config to its defaults."""
        known = list(self._host_keys.known(route.key_name))
        connection = Connection(
            route.host,
            route.user,
            route.port,
            config=Config(lazy=True, ssh_config=paramiko.SSHConfig()),
            gateway=False,
            forward_agent=False,
            connect_kwargs={
                "sock": sock,
                "banner_timeout": self._timeout,
                "auth_timeout": self._timeout,
                "channel_timeout": self._timeout,
                "disabled_algorithms": _WEAK,
                "transport_factory": partial(_Transport, known=known, details=details),
                **login.arguments,
            },
        )
        connection.client.set_missing_host_key_policy(policy)
        try:
            connection.open()
        except BaseException:
            connection.client.close()
            raise
        return connection


@dataclass(slots=True)
class _Jump:
    """The connection to a jump host, or why there is none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None
    error: FleetError | None = None


class _StrictPolicy(paramiko.MissingHostKeyPolicy):
    """No known_hosts file is loaded into the client, so paramiko passes every key to this check."""

    def __init__(self, check: Callable[[paramiko.PKey], None]) -> None:
        self._check = check

    def missing_host_key(self, client: object, hostname: str, key: paramiko.PKey) -> None:
        self._check(key)


class _HostKeySeen(Exception):
    """Ends a connection that was opened only to read the host key."""

    def __init__(self, name: str, key: paramiko.PKey) -> None:
        super().__init__(name)
        self.name, self.key = name, key


def _report(node: str, name: str, key: paramiko.PKey) -> None:
    raise _HostKeySeen(name, key)


def _hung_up(error: Exception) -> bool:
    if isinstance(error, ConnectionRefusedError):
        return False
    return "banner" in str(error) or isinstance(error, EOFError | ConnectionError)


def _hop(spec: str, before: str | None) -> Ssh:
    """`[user@]host[:port]` of a jump host; `before` are the jump hosts that lead to it."""
    user, _, place = spec.rpartition("@")
    host, port = address.split_host_port(place)
    return Ssh(host, user or None, port, None, before)


class _Transport(paramiko.Transport):
    """Keeps its last debug messages in `details`, to explain a failure.

    Writing all of them to the log would take a fifth of the time of a run.
    """

    def __init__(
        self, sock: Any, *, known: Iterable[str], details: deque[str], **options: Any
    ) -> None:
        self._details = details
        super().__init__(sock, **options)
        # A server may have several keys: ask for one of the types that are known.
        security = self.get_security_options()
        wanted = [kind for name in known for kind in (_RSA if name == "ssh-rsa" else [name])]
        usable = [kind for kind in wanted if kind in security.key_types]
        others = [kind for kind in security.key_types if kind not in usable]
        security.key_types = (*usable, *others)
        # GCM needs no separate MAC; paramiko compares MACs byte by byte, in Python.
        security.ciphers = sorted(security.ciphers, key=lambda name: "gcm" not in name)

    def _log(self, level: int, msg: Any, *args: Any) -> None:
        if level > logging.DEBUG:
            super()._log(level, msg, *args)  # type: ignore[misc]
        else:
            self._details.append(str(msg) % args if args else str(msg))


class _PromptSocket(socket.socket):
    """Acknowledges at once. Linux resets TCP_QUICKACK, so it is set after each read.

    Otherwise Nagle's algorithm on one side and delayed acknowledgements on the other cost 40 ms
    twice in each connection.
    """

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        with contextlib.suppress(AttributeError, OSError):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def _tcp_socket(host: str, port: int, timeout: float) -> socket.socket:
    """Connected to a server that has sent data: an SSH server sends its banner first."""
    plain = socket.create_connection((host, port), timeout)
    prompt = _PromptSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
    prompt.settimeout(timeout)
    prompt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    prompt.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP.items():
        with contextlib.suppress(AttributeError, OSError):
            prompt.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        prompt.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        prompt.close()
        raise OSError("no SSH banner") from None
    except OSError:
        prompt.close()
        raise
    return prompt
