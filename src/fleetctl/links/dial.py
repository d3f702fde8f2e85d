"""Opening SSH connections: Fabric connects, with our sockets, our keys and strict host keys.

Fabric by itself accepts any host key, also of jump hosts, and forwards what ssh_config says; so the
connection is put together here, and a jump host is one more connection of the same kind, shared by
all nodes behind it.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import fabric
import paramiko

from fleetctl.errors import FleetError
from fleetctl.inventory import ssh_config
from fleetctl.links import sockets
from fleetctl.links.host_keys import HostKeys, name_of
from fleetctl.links.keys import Keyring, Login
from fleetctl.links.reasons import explained
from fleetctl.links.ssh import SshLink
from fleetctl.model import address
from fleetctl.model.fleet import Ssh

Check = Callable[[str, str, paramiko.PKey], None]
"""Node, name and key; returns when the key is right."""

_TRIES = 3
_WEAK = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
}
_RSA = ["rsa-sha2-512", "rsa-sha2-256"]


class Dialler:
    """One for a run: what all connections share is read once."""

    def __init__(self, host_keys: HostKeys, timeout: float) -> None:
        self._host_keys = host_keys
        self._keyring = Keyring()
        self._timeout = timeout
        self._ssh_config = paramiko.SSHConfig.from_text("\n".join(ssh_config.lines()))
        self._jumps: dict[str, _Shared] = {}
        logging.getLogger("paramiko").addHandler(logging.NullHandler())

    def dial(self, node: str, ssh: Ssh, password: str | None = None) -> SshLink:
        """With a password no key is tried; on the way there, jump hosts get keys only."""
        return SshLink(self._open(node, ssh, password=password))

    def public_key(self, ssh: Ssh) -> str | None:
        """The key that a machine must let in for `dial` to work, as authorized_keys has it."""
        said = self._ssh_config.lookup(ssh.host)
        files = [ssh.identity_file] if ssh.identity_file else list(said.get("identityfile", []))
        return self._keyring.first_public(files)

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
        if self._host_keys.known(name).get(key.get_name()) != key:
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
        password: str | None = None,
    ) -> fabric.Connection:
        # A configuration of its own, since Fabric's cannot be shared between threads.
        config = fabric.Config(ssh_config=self._ssh_config, lazy=True)
        # `gateway=False`: the jumps that Fabric makes by itself accept any host key.
        connection = fabric.Connection(
            ssh.host, ssh.user, ssh.port, config=config, gateway=False, forward_agent=False
        )
        said = connection.ssh_config
        jump = ssh.jump or said.get("proxyjump", "none")
        if jump != "none" and jump not in through:
            on_the_way = self._pass_or_look if check else None
            connection.gateway = self._jump(node, jump, through, on_the_way)
        elif "proxycommand" in said:
            connection.gateway = said["proxycommand"]
        files = [ssh.identity_file] if ssh.identity_file else said.get("identityfile", [])
        login = self._keyring.login(files) if password is None else Login.by_password(password)
        name = name_of(said.get("hostkeyalias", connection.host), connection.port)
        check = check or self._host_keys.check
        connection.client.set_missing_host_key_policy(_Strict(partial(check, node, name)))
        connection.connect_kwargs = {
            **login.arguments,
            "banner_timeout": self._timeout,
            "auth_timeout": self._timeout,
            "channel_timeout": self._timeout,
            "disabled_algorithms": _WEAK,
            "transport_factory": partial(_transport, list(self._host_keys.known(name))),
        }
        try:
            self._connect(connection, login)
        except BaseException:
            connection.client.close()
            raise
        return connection

    def _jump(
        self, node: str, spec: str, through: tuple[str, ...], check: Check | None
    ) -> fabric.Connection:
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

    def _connect(self, connection: fabric.Connection, login: Login) -> None:
        """A server that is too busy closes early: worth another try, a little later."""
        for attempt in range(1, _TRIES + 1):
            started = time.monotonic()
            try:
                if not connection.gateway:
                    sock = sockets.connect(connection.host, connection.port, self._timeout)
                    connection.connect_kwargs["sock"] = sock
                connection.open()
            except FleetError:
                raise
            except (OSError, EOFError, paramiko.SSHException) as error:
                hung_up = "banner" in str(error) or isinstance(error, EOFError | ConnectionError)
                early = time.monotonic() - started < self._timeout / 2
                refused = isinstance(error, ConnectionRefusedError) or login.once
                if not (hung_up and early and attempt < _TRIES) or refused:
                    raise explained(error, connection, login, self._timeout) from error
                time.sleep(random.uniform(0.1, 0.4) * attempt)  # noqa: S311  not for secrecy
            else:
                return


@dataclass(slots=True)
class _Shared:
    """A jump host: a connection, or why there is none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: fabric.Connection | None = None
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


def _transport(known: list[str], sock: Any, **options: Any) -> paramiko.Transport:
    """Prefers the types of the keys that are known, as the server may have several."""
    transport = paramiko.Transport(sock, **options)
    security = transport.get_security_options()
    wanted = [kind for name in known for kind in (_RSA if name == "ssh-rsa" else [name])]
    usable = [kind for kind in wanted if kind in security.key_types]
    others = [kind for kind in security.key_types if kind not in usable]
    security.key_types = (*usable, *others)
    # GCM carries its own check; paramiko compares the others' byte by byte, in Python.
    security.ciphers = sorted(security.ciphers, key=lambda name: "gcm" not in name)
    return transport


def _hop(spec: str, before: str | None) -> Ssh:
    """`[user@]host[:port]` of a jump host, and the ones before it."""
    user, _, place = spec.rpartition("@")
    host, port = address.split_host_port(place)
    return Ssh(host, user or None, port, None, before)
