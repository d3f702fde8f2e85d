"""Which SSH host keys are known: the project's own file first, then the user's and the system's."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko

from fleetctl.errors import Exit, FleetError

Ask = Callable[[str, str], bool]
"""Shows a name and a fingerprint to a person, who says whether it is right."""


class HostKeys:
    """Parsed once a run and shared by all connections."""

    def __init__(self, own: Path, ask: Ask | None = None, *, in_inventory: bool = True) -> None:
        """`trust` is only for machines that are in the inventory already."""
        home = Path("~/.ssh/known_hosts").expanduser()
        self._own = own
        self._ask = ask
        self._in_inventory = in_inventory
        self._lock = threading.Lock()
        self._files = [_read(file) for file in (own, home, Path("/etc/ssh/ssh_known_hosts"))]

    def known(self, name: str) -> dict[str, paramiko.PKey]:
        """The keys of a name by type; the first file that has the name decides."""
        for keys in self._files:
            if found := keys.lookup(name):
                return dict(found.items())
        return {}

    def check(self, node: str, name: str, key: paramiko.PKey) -> None:
        """Returns when the key is right; nothing was sent to the other side until then."""
        with self._lock:  # one question at a time
            known = self.known(name)
            if known.get(key.get_name()) == key:
                return
            if known:
                hint = f"fleetctl trust {node} --replace --fingerprint {fingerprint(key)}"
                if not self._in_inventory:
                    hint = f"delete {name} from {self._own} and from ~/.ssh/known_hosts"
                raise _changed(name, known, key, hint)
            if self._ask is None or not self._ask(name, fingerprint(key)):
                raise _unknown(node, key)
            self._remember(name, key)

    def trust(self, name: str, key: paramiko.PKey) -> None:
        """From now on this is the only key of that name."""
        with self._lock:
            self._remember(name, key)

    def _remember(self, name: str, key: paramiko.PKey) -> None:
        """Rewrites the project's file, old or new and nothing in between."""
        own = _read(self._own)
        lines = [line for each, line in _lines(own) if each != name]
        lines.append(f"{name} {key.get_name()} {key.get_base64()}")
        self._own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._own.with_name(f".{self._own.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        fresh.replace(self._own)
        self._files[0] = _read(self._own)


def fingerprint(key: paramiko.PKey) -> str:
    """As ssh shows it: `SHA256:…`."""
    return str(key.fingerprint)


def name_of(host: str, port: int) -> str:
    """How known_hosts files call a server."""
    return host if port == 22 else f"[{host}]:{port}"


def _read(file: Path) -> paramiko.HostKeys:
    keys = paramiko.HostKeys()
    try:
        keys.load(str(file))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FleetError(f"{file} cannot be read: {error.strerror}") from None
    return keys


def _lines(keys: paramiko.HostKeys) -> Iterator[tuple[str, str]]:
    for name, by_type in keys.items():
        for kind, key in by_type.items():
            yield name, f"{name} {kind} {key.get_base64()}"


def _unknown(node: str, key: paramiko.PKey) -> FleetError:
    shown = fingerprint(key)
    return FleetError(
        f"its host key is not known: {shown}",
        hint=f"compare it on the machine itself, then: fleetctl trust {node} --fingerprint {shown}",
        exit_code=Exit.REFUSED,
    )


def _changed(
    name: str, known: dict[str, paramiko.PKey], key: paramiko.PKey, hint: str
) -> FleetError:
    before = ", ".join(fingerprint(each) for each in known.values())
    return FleetError(
        f"THE HOST KEY OF {name} HAS CHANGED from {before} to {fingerprint(key)}: "
        "either the machine was set up anew, or somebody stands between you and it",
        hint=f"if you know why: {hint}",
        exit_code=Exit.REFUSED,
    )
