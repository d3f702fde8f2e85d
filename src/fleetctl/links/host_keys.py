"""Known SSH host keys: the project's own file first, then the user's and the system's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from fleetctl.errors import Exit, FleetError

Ask = Callable[[str, str], bool]
"""Shows a name and a fingerprint to the user; True accepts the key."""

_KINDS = ("ssh-ed25519", "ssh-rsa", *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)))
"""The kinds that paramiko can verify; lines with other kinds are ignored."""
_REVOKED = "@revoked"


class HostKeys:
    """Reads the known_hosts files once a run; shared by all connections."""

    def __init__(self, own: Path, ask: Ask | None = None, *, in_inventory: bool = True) -> None:
        """`own` is the project's file, `ask` accepts unknown keys (None: refuse them).

        `in_inventory` is False for a machine that `fleetctl trust` does not know by name yet.
        """
        home = Path("~/.ssh/known_hosts").expanduser()
        self._own = own
        self._ask = ask
        self._in_inventory = in_inventory
        self._lock = threading.Lock()
        self._files = [_read(file) for file in (own, home, Path("/etc/ssh/ssh_known_hosts"))]

    def known(self, name: str) -> dict[str, bytes]:
        """The keys of a name by type, from the first file that has the name."""
        return next(filter(None, (file.keys(name) for file in self._files)), {})

    def knows(self, name: str, key: paramiko.PKey) -> bool:
        return self.known(name).get(key.get_name()) == key.asbytes()

    def check(self, node: str, name: str, key: paramiko.PKey) -> None:
        """Raises FleetError unless the key is accepted. Must run before anything else is sent."""
        with self._lock:  # one question at a time
            if any(key.asbytes() in file.revoked for file in self._files):
                raise _revoked(name, key)
            if self.knows(name, key):
                return
            shown = fingerprint(key.asbytes())
            if known := self.known(name):
                hint = f"fleetctl trust {node} --replace --fingerprint {shown}"
                if not self._in_inventory:
                    hint = f"delete {name} from {self._own} and from ~/.ssh/known_hosts"
                raise _changed(name, known, shown, hint)
            if self._ask is None or not self._ask(name, shown):
                raise _unknown(node, key)
            self._remember(name, key)

    def trust(self, name: str, key: paramiko.PKey) -> None:
        """Make this the only key of that name in the project's file."""
        with self._lock:
            self._remember(name, key)

    def _remember(self, name: str, key: paramiko.PKey) -> None:
        """Rewrite the project's file atomically."""
        lines = [line for other, line in _lines(self._own) if other != name]
        lines.append(f"{name} {key.get_name()} {key.get_base64()}")
        self._own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._own.with_name(f".{self._own.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        fresh.replace(self._own)
        self._files[0] = _read(self._own)


@dataclass(frozen=True, slots=True)
class _File:
    """A parsed known_hosts file. Each hashed entry must be compared with a name."""

    plain: dict[str, dict[str, bytes]] = field(default_factory=dict)
    hashed: list[tuple[bytes, bytes, str, bytes]] = field(default_factory=list)
    revoked: set[bytes] = field(default_factory=set)

    def keys(self, name: str) -> dict[str, bytes]:
        found = dict(self.plain.get(name, {}))
        for salt, digest, kind, key in self.hashed:
            if hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest):
                found.setdefault(kind, key)
        return found


def _read(path: Path) -> _File:
    file = _File()
    for name, line in _lines(path):
        try:
            words = line.split()
            _, kind, text, *_ = words[1:] if name == _REVOKED else words
            key = base64.b64decode(text, validate=True)
            if kind not in _KINDS:
                continue
            if name == _REVOKED:  # on every machine
                file.revoked.add(key)
            elif name.startswith("|1|"):  # hashed, as `ssh-keygen -H` writes it
                salt, digest = map(base64.b64decode, name.split("|")[2:])
                file.hashed.append((salt, digest, kind, key))
            else:
                file.plain.setdefault(name, {}).setdefault(kind, key)
        except ValueError:  # not a line with a key
            continue
    return file


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each name with a line of its own; `@revoked` counts as a name. CA lines are left out."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise FleetError(f"{path} cannot be read: {error.strerror}") from None
    for line in text.splitlines():
        names, _, rest = line.strip().partition(" ")
        if names == _REVOKED or not names.startswith(("#", "@")):
            yield from ((name, f"{name} {rest}") for name in names.split(",") if name)


def fingerprint(key: bytes) -> str:
    """`SHA256:…`, as ssh shows it."""
    digest = hashlib.sha256(key).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _unknown(node: str, key: paramiko.PKey) -> FleetError:
    shown = fingerprint(key.asbytes())
    return FleetError(
        f"its host key is not known: {shown}",
        hint=f"compare it on the machine itself, then: fleetctl trust {node} --fingerprint {shown}",
        exit_code=Exit.REFUSED,
    )


def _revoked(name: str, key: paramiko.PKey) -> FleetError:
    return FleetError(
        f"THE HOST KEY OF {name} IS REVOKED: {fingerprint(key.asbytes())}",
        hint="a known_hosts file lists it as @revoked: give the machine a new host key",
        exit_code=Exit.REFUSED,
    )


def _changed(name: str, known: dict[str, bytes], shown: str, hint: str) -> FleetError:
    before = ", ".join(map(fingerprint, known.values()))
    return FleetError(
        f"THE HOST KEY OF {name} HAS CHANGED from {before} to {shown}: "
        "the machine was reinstalled, or the connection is intercepted",
        hint=f"only if you know why it changed: {hint}",
        exit_code=Exit.REFUSED,
    )
