"""Where a connection leads, and what to log in with: ~/.ssh/config, private keys, the SSH agent."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import paramiko

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import ssh_config
from fleetctl.model.fleet import Ssh

_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class Route:
    """The address of a node, with the user's ~/.ssh/config applied."""

    name: str
    """As the inventory names it, before ~/.ssh/config."""
    host: str
    port: int
    user: str
    key_name: str
    """Its name in known_hosts files."""
    identity_files: tuple[str, ...]
    jump: str | None
    proxy_command: str | None


class Routes:
    """Reads ~/.ssh/config once a run."""

    def __init__(self) -> None:
        try:
            self._config = paramiko.SSHConfig.from_text("\n".join(ssh_config.lines()))
        except paramiko.ConfigParseError as error:
            raise FleetError(f"~/.ssh/config: {error}", exit_code=Exit.USAGE) from None

    def to(self, ssh: Ssh) -> Route:
        """Values of the inventory take precedence over those of ~/.ssh/config."""
        found = self._config.lookup(ssh.host)
        host, port = found["hostname"], ssh.port or int(found.get("port", 22))
        files = [ssh.identity_file] if ssh.identity_file else found.get("identityfile", [])
        jump = ssh.jump or found.get("proxyjump", "none")
        return Route(
            name=ssh.host,
            host=host,
            port=port,
            user=ssh.user or found.get("user") or getpass.getuser(),
            key_name=found.get("hostkeyalias") or (host if port == 22 else f"[{host}]:{port}"),
            identity_files=tuple(files),
            jump=None if jump == "none" else jump,
            proxy_command=found.get("proxycommand"),
        )


@dataclass(frozen=True, slots=True)
class Login:
    """What is offered to a server, and how to name it in an error message."""

    arguments: dict[str, Any] = field(repr=False)
    """For `paramiko.SSHClient.connect`."""
    tried: list[str]
    unusable: list[str] = field(default_factory=list)
    once: bool = False
    """Do not offer it again after a connection that broke: a password counts each time."""


class Keyring:
    """Parses each private key once a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parsed: dict[Path, paramiko.PKey | str] = {}

    def login(self, files: Sequence[str], password: str | None) -> Login:
        """A password, or the named keys, are offered alone.

        An SSH agent with many keys would use up the tries that the server allows.
        """
        nothing_else = {"allow_agent": False, "look_for_keys": False}
        if password is not None:
            return Login({"password": password, **nothing_else}, ["a password"], once=True)
        if not files:
            tried = ["the SSH agent's", *_DEFAULT_KEYS]
            return Login({"allow_agent": True, "look_for_keys": True}, tried)
        parsed = {name: self._key(Path(name).expanduser()) for name in files}
        usable = {name: key for name, key in parsed.items() if not isinstance(key, str)}
        arguments = {
            "pkey": next(iter(usable.values()), None),
            "key_filename": [str(Path(name).expanduser()) for name in list(usable)[1:]],
            **nothing_else,
        }
        unusable = [f"{name} ({key})" for name, key in parsed.items() if isinstance(key, str)]
        return Login(arguments, list(usable), unusable)

    def first_public(self, files: Sequence[str]) -> str | None:
        """The public half of the key that is offered first, in the form of authorized_keys."""
        agent = paramiko.Agent()
        agent_keys = () if files else agent.get_keys()
        agent.close()
        parsed = (self._key(Path(name).expanduser()) for name in files or _DEFAULT_KEYS)
        usable = (key for key in chain(agent_keys, parsed) if not isinstance(key, str))
        return next((f"{key.get_name()} {key.get_base64()}" for key in usable), None)

    def _key(self, file: Path) -> paramiko.PKey | str:
        """The key, or why it cannot be used."""
        with self._lock:
            if file not in self._parsed:
                self._parsed[file] = _parse(file)
            return self._parsed[file]


def _parse(file: Path) -> paramiko.PKey | str:
    try:
        return paramiko.PKey.from_path(file)
    except (paramiko.PasswordRequiredException, TypeError):
        return _from_agent(file) or f"needs its passphrase: ssh-add {file}"
    except OSError as error:
        return str(error.strerror).lower()
    except (paramiko.SSHException, ValueError):
        return "is not a private key"


def _from_agent(file: Path) -> paramiko.PKey | None:
    """The same key in the SSH agent, which needs no passphrase any more."""
    try:
        public = file.with_name(f"{file.name}.pub").read_text().split()[1]
    except (OSError, IndexError, UnicodeDecodeError):
        return None
    return next((key for key in paramiko.Agent().get_keys() if key.get_base64() == public), None)
