"""Opening SSH connections, with our sockets, our keys and strict host keys.

A jump host is one more connection of the same kind, shared by all nodes behind it.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import paramiko

from fleetctl.errors import FleetError
from fleetctl.links.host_keys import HostKeys
from fleetctl.links.keys import Keyring, Login
from fleetctl.links.reasons import explained
from fleetctl.links.route import Route, Routes
from fleetctl.links.ssh import SshLink
from fleetctl.links.transport import WEAK, Transport, connected
from fleetctl.model import address
from fleetctl.model.fleet import Ssh

Check = Callable[[str, str, paramiko.PKey], None]
"""Node, name and key; returns when the key is right."""

_LOG = logging.getLogger(__name__)
_TRIES = 3


class Dialler:
    """One for a run: what all connections share is read once.

    So many connections as there are `places` are open at once. Who waits for a machine to answer
    takes none, so that dead machines do not keep the others waiting.
    """

    def __init__(self, host_keys: HostKeys, timeout: float, places: int = 256) -> None:
        self._host_keys = host_keys
        self._keyring = Keyring()
        self._timeout = timeout
        self._places = threading.Semaphore(places)
        self._routes = Routes()
        self._jumps: dict[str, _Shared] = {}
        logging.getLogger("paramiko").setLevel(logging.INFO)
        logging.getLogger("paramiko").addHandler(logging.NullHandler())

    def dial(self, node: str, ssh: Ssh, password: str | None = None) -> SshLink:
        """With a password no key is tried; on the way there, jump hosts get keys only."""
        with ExitStack() as place:
            client = self._open(
                node, ssh, reached=lambda: place.enter_context(self._places), password=password
            )
            return SshLink(client, place.pop_all())

    def public_key(self, ssh: Ssh) -> str | None:
        """The key that a machine must let in for `dial` to work, as authorized_keys has it."""
        return self._keyring.first_public(self._routes.to(ssh).identity_files)

    def host_key(self, node: str, ssh: Ssh) -> tuple[str, paramiko.PKey]:
        """The key that a node shows, and its name in known_hosts; nobody logs in there.

        A jump host on the way whose key is not known comes first.
        """
        try:
            self._open(node, ssh, check=_look).close()
        except _Seen as seen:
            return seen.name, seen.key
        raise FleetError(f"{ssh.host} showed no host key")

    def _pass_or_look(self, node: str, name: str, key: paramiko.PKey) -> None:
        if not self._host_keys.knows(name, key):
            _look(node, name, key)

    def close(self) -> None:
        for jump in self._jumps.values():
            if jump.connection:
                jump.connection.close()

    def _open(
        self,
        node: str,
        ssh: Ssh,
        through: tuple[str, ...] = (),
        check: Check | None = None,
        reached: Callable[[], object] = bool,
        password: str | None = None,
    ) -> paramiko.SSHClient:
        route = self._routes.to(ssh)
        jump = None
        if route.jump and route.jump not in through:
            on_the_way = self._pass_or_look if check else None
            jump = self._jump(node, route.jump, through, on_the_way)
        check = partial(check or self._host_keys.check, node, route.key_name)
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(_Strict(check))
        login = self._keyring.login(route.identity_files, password)
        try:
            self._connect(client, route, login, jump, reached)
        except BaseException:
            client.close()
            raise
        return client

    def _jump(
        self, node: str, spec: str, through: tuple[str, ...], check: Check | None
    ) -> paramiko.SSHClient:
        """All nodes behind a jump host share one connection to it, or one refusal."""
        *before, last = spec.split(",")
        shared = self._jumps.setdefault(spec, _Shared())
        with shared.lock:
            if shared.error:
                raise shared.error
            if shared.connection is None:
                hop = _hop(last, ",".join(before) or None)
                try:
                    shared.connection = self._open(node, hop, (*through, spec), check)
                except FleetError as error:
                    shared.error = FleetError(
                        f"the jump host {last}: {error.message}",
                        hint=error.hint,
                        exit_code=error.exit_code,
                    )
                    raise shared.error from None
            return shared.connection

    def _connect(
        self,
        client: paramiko.SSHClient,
        route: Route,
        login: Login,
        jump: paramiko.SSHClient | None,
        reached: Callable[[], object],
    ) -> None:
        """A server that is too busy closes early: worth another try, a little later."""
        known = list(self._host_keys.known(route.key_name))
        answered = False
        for attempt in range(1, _TRIES + 1):
            started = time.monotonic()
            try:
                sock = self._socket(route, jump)
                if not answered:
                    reached()
                    started, answered = time.monotonic(), True
                client.connect(
                    route.host,
                    route.port,
                    route.user,
                    sock=sock,
                    banner_timeout=self._timeout,
                    auth_timeout=self._timeout,
                    channel_timeout=self._timeout,
                    disabled_algorithms=WEAK,
                    transport_factory=partial(Transport, known=known),
                    **login.arguments,
                )
            except (OSError, EOFError, paramiko.SSHException) as error:
                hung_up = "banner" in str(error) or isinstance(error, EOFError | ConnectionError)
                early = time.monotonic() - started < self._timeout / 2
                refused = isinstance(error, ConnectionRefusedError) or login.once
                transport = client.get_transport()
                details = list(transport.details) if isinstance(transport, Transport) else []
                _LOG.debug("%s, try %d: %r %s", route.called, attempt, error, details)
                if not (hung_up and early and attempt < _TRIES) or refused:
                    raise explained(error, route, login, self._timeout, details) from error
                time.sleep(random.uniform(0.1, 0.4) * attempt)  # noqa: S311  not for secrecy
            else:
                return

    def _socket(self, route: Route, jump: paramiko.SSHClient | None) -> Any:
        if jump is not None:
            transport = jump.get_transport()
            assert transport is not None
            return transport.open_channel("direct-tcpip", (route.host, route.port), ("", 0))
        if route.proxy_command is not None:
            return paramiko.ProxyCommand(route.proxy_command)
        return connected(route.host, route.port, self._timeout)


@dataclass(slots=True)
class _Shared:
    """A jump host: a connection, or why there is none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: paramiko.SSHClient | None = None
    error: FleetError | None = None


class _Strict(paramiko.MissingHostKeyPolicy):
    """Paramiko knows no host keys here, so that every key comes to this one place."""

    def __init__(self, check: Callable[[paramiko.PKey], None]) -> None:
        self._check = check

    def missing_host_key(self, client: object, hostname: str, key: paramiko.PKey) -> None:
        self._check(key)


class _Seen(Exception):
    """A host key, seen by somebody who only came to see it."""

    def __init__(self, name: str, key: paramiko.PKey) -> None:
        super().__init__(name)
        self.name, self.key = name, key


def _look(node: str, name: str, key: paramiko.PKey) -> None:
    raise _Seen(name, key)


def _hop(spec: str, before: str | None) -> Ssh:
    """`[user@]host[:port]` of a jump host, and the ones before it."""
    user, _, place = spec.rpartition("@")
    host, port = address.split_host_port(place)
    return Ssh(host, user or None, port, None, before)
