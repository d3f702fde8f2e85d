"""Private keys to log in with, each parsed once a run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import paramiko

_USUAL = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class Login:
    """What to offer to a server, and how to speak of it when it was not enough."""

    arguments: dict[str, Any] = field(repr=False)
    tried: list[str]
    unusable: list[str] = field(default_factory=list)
    once: bool = False
    """Not to be offered again after a connection that broke."""


class Keyring:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parsed: dict[Path, paramiko.PKey | str] = {}

    def login(self, files: Sequence[str], password: str | None) -> Login:
        """A password, or keys that were named, go alone: a full agent would use up the tries."""
        nothing_else = {"allow_agent": False, "look_for_keys": False}
        if password is not None:
            return Login({"password": password, **nothing_else}, ["a password"], once=True)
        if not files:
            return Login({"allow_agent": True, "look_for_keys": True}, ["the SSH agent's", *_USUAL])
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
        """The public half of the key that is offered first, as authorized_keys has it."""
        agent = paramiko.Agent()
        agents = () if files else agent.get_keys()
        agent.close()
        parsed = (self._key(Path(name).expanduser()) for name in files or _USUAL)
        usable = (key for key in chain(agents, parsed) if not isinstance(key, str))
        return next((f"{key.get_name()} {key.get_base64()}" for key in usable), None)

    def _key(self, file: Path) -> paramiko.PKey | str:
        """The key, or why there is none."""
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
    """The same key in the SSH agent, which has its passphrase."""
    try:
        public = file.with_name(f"{file.name}.pub").read_text().split()[1]
    except (OSError, IndexError, UnicodeDecodeError):
        return None
    return next((key for key in paramiko.Agent().get_keys() if key.get_base64() == public), None)
