"""What a node is: everything that was seen on it in one look, and what could not be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fleetctl.model import address

UNREADABLE = b"@unreadable\n"
"""What a script says in place of a file that it may not read."""
LARGEST_FILE = 2**20

Scope = Literal["system", "user"]
"""Whose the service is; what fleetctl keeps on the node is kept there too."""

Mode = Literal["system", "user", "daemon", "agent", "app", "brew"]
"""The ways to run Ollama, as an inventory names them."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not known, because. Never to be taken for "fine"."""

    why: str


@dataclass(frozen=True, slots=True)
class Host:
    """The machine itself."""

    system: str
    """Linux or Darwin, as uname has it."""
    release: str
    machine: str
    distribution: str
    name: str
    user: str
    uid: int
    home: str
    traits: frozenset[str]
    """nixos, container, wsl: what makes a machine special to us."""
    programs: tuple[str, ...]
    """Ollama's executables, by path."""
    addresses: tuple[str, ...] | Unknown

    def expanded(self, path: str) -> str:
        """`~` is the home of the user there."""
        return path.replace("~", self.home, 1)

    def shortened(self, path: str) -> str:
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path


@dataclass(frozen=True, slots=True)
class File:
    """A file on a node; `content` is None where there is none."""

    content: str | Unknown | None
    """Text from which the bytes can be had again: what is not UTF-8 is in surrogate escapes."""
    mode: str = ""
    """As `ls -l` shows it, kind of file included."""

    @property
    def permissions(self) -> int:
        """`-rw-r--r--` as 0o644, `-rwsr-xr-x` as 0o4755."""
        letters = self.mode[1:10]
        plain = sum(1 << (8 - at) for at, letter in enumerate(letters) if letter not in "-ST")
        special = sum(4 >> at for at, letter in enumerate(letters[2::3]) if letter in "sStT")
        return special << 9 | plain

    @classmethod
    def listed(cls, content: bytes, line: str) -> File:
        """From what was read, and the line of `ls -ldn`; no line, no file."""
        if not line.strip():
            return cls(None)
        mode = line.split()[0]
        if content == UNREADABLE:
            return cls(Unknown("it may not be read"), mode)
        if len(content) > LARGEST_FILE:
            return cls(Unknown("it is larger than 1 MiB"), mode)
        return cls(content.decode(errors="surrogateescape"), mode)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that gives variables to the server when it starts next."""

    path: str
    values: Mapping[str, str]
    ours: bool = False
    wins: bool = False
    """Whether it would win over our own file."""


@dataclass(frozen=True, slots=True)
class Service:
    """One way in which Ollama is, or could be, run on a node."""

    scope: Scope
    mode: Mode
    loaded: bool
    """Whether the supervisor knows it."""
    creatable: bool = False
    """Whether fleetctl would make it, where it is not there."""
    preference: int = 0
    """Which of several to take."""
    blocked: str = ""
    """Why it cannot be changed now, and what to do about it."""
    fix: str = ""
    enabled: bool = False
    active: bool = False
    starting: bool = False
    """Whether it is not up, and its supervisor is about to try again."""
    pid: int | None = None
    run: str = ""
    """Changes with every start."""
    restarts: int = 0
    reload_pending: bool = False
    definition: str = ""
    """The file that defines it."""
    sources: tuple[Source, ...] = ()
    """What the next start will get, in order: the last one that sets a variable wins."""
    running: Mapping[str, str] | Unknown = Unknown("it does not run")
    """The environment of the running process."""
    effective: Mapping[str, str] | Unknown = Unknown("it does not run")
    """What Ollama itself says that it uses."""
    log: str = ""
    """The file that it logs to, if it is one; `~` is the home of the user."""
    computes_on: tuple[str, ...] = ()
    """The devices that it found, as its log names them."""
    files: Mapping[str, File] = field(default_factory=dict)
    """Its own files and ours, by path."""

    @property
    def as_root(self) -> bool:
        """Whether only root may change it."""
        return self.scope == "system"

    @property
    def hides_from_us(self) -> bool:
        """Whether root would see more."""
        unseen = isinstance(self.running, Unknown) or isinstance(self.effective, Unknown)
        return self.active and self.as_root and unseen

    def seen(self, variable: str) -> str | None:
        """What the running server uses, as far as it is known."""
        for known in (self.effective, self.running):
            if isinstance(known, Mapping) and variable in known:
                return known[variable]
        return None

    @property
    def listens(self) -> str | None:
        """The address that the running server was told to listen on."""
        return self.seen("OLLAMA_HOST")


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves Ollama, whoever started it."""

    pid: int
    uid: int
    unit: str
    """What supervises it, as far as the system says so."""
    command: str


@dataclass(frozen=True, slots=True)
class Api:
    """What Ollama says over HTTP."""

    listens: str
    """Where it answered."""
    version: str
    models: Mapping[str, str]
    """Digest by name."""

    @property
    def port(self) -> int:
        return address.place_of(self.listens)[1]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What only a first look asks."""

    sudo: str
    """root, free, refused or absent."""
    free: Mapping[str, int]
    """Kilobytes left, by where the file system is mounted."""
    ports: frozenset[int]
    """TCP ports that something listens on."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the node keeps of how things were."""

    files: Mapping[str, tuple[File, File]]
    """By path: as the file is, and as it was."""
    disabled: bool = False
    """Whether Ollama did not start at boot before fleetctl came."""
    stopped: bool = False
    """Whether it did not run then."""
    displaced: str = ""
    """The mode of the service that had to make room for fleetctl's."""


@dataclass(frozen=True, slots=True)
class Facts:
    host: Host
    services: tuple[Service, ...]
    servers: tuple[Server, ...]
    api: Api | Unknown
    files: Mapping[str, File] = field(default_factory=dict)
    unfinished: frozenset[Scope] = frozenset()
    """Where a transaction was cut off, and waits to be undone."""
    at_work: str = ""
    """Whose run is changing the node right now."""
    preflight: Preflight | None = None
    kept: Mapping[Scope, Kept] = field(default_factory=dict)
    """Only asked about on the way back."""
    guards: Mapping[str, bool | Unknown] = field(default_factory=dict)
    """Whether what a command step brings about is there already, by the step's name."""
