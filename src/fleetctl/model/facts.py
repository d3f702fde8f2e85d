"""What a machine is: everything that was observed at one time, and what could not be observed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from fleetctl.model import address

LARGEST_FILE = 2**20
"""Larger files of a node are not read."""

Scope = Literal["system", "user"]
"""Whose a service or a file is. Changes in the scope `system` need root."""

Mode = Literal["system", "user", "daemon", "agent", "app", "brew"]
"""The ways to run a service, as the inventory names them."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that could not be read, and why. Never to be treated as "ok"."""

    why: str


@dataclass(frozen=True, slots=True)
class File:
    """A file on a machine; `content` is None where there is none."""

    content: str | Unknown | None
    """Bytes that are not UTF-8 are kept as surrogate escapes."""
    mode: str = ""
    """As `ls -l` shows it, with the kind of file."""

    @property
    def permissions(self) -> int:
        """`-rw-r--r--` as 0o644, `-rwsr-xr-x` as 0o4755."""
        letters = self.mode[1:10]
        plain = sum(1 << (8 - at) for at, letter in enumerate(letters) if letter not in "-ST")
        special = sum(4 >> at for at, letter in enumerate(letters[2::3]) if letter in "sStT")
        return special << 9 | plain


ABSENT = File(None)


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves Ollama, by whatever means it was started."""

    pid: int
    uid: int
    unit: str
    """The unit of the service manager that it belongs to, if the system says so."""
    command: str


@dataclass(frozen=True, slots=True)
class Host:
    """The machine itself."""

    system: str
    """Linux or Darwin, as uname prints it."""
    release: str
    machine: str
    distribution: str
    name: str
    user: str
    uid: int
    home: str
    traits: frozenset[str] = frozenset()
    """nixos, container, wsl: what needs special treatment."""
    programs: tuple[str, ...] = ()
    """Ollama's executables, by path."""
    servers: tuple[Server, ...] = ()
    addresses: tuple[str, ...] | Unknown = Unknown("it was not asked for")
    unfinished: frozenset[Scope] = frozenset()
    """Scopes in which a transaction was interrupted and not yet undone."""
    locked_by: str = ""
    """The owner of a run that is changing the machine now."""

    def expanded(self, path: str) -> str:
        """`~` is the home of the user on that machine."""
        return path.replace("~", self.home, 1)

    def shortened(self, path: str) -> str:
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """A file that describes a service to its service manager."""

    path: str
    """`~` is the home of the user."""
    template: str
    decode: Callable[[str], Mapping[str, str]] | None = None
    """Reads the environment variables in it, if it holds them."""
    defines: bool = False
    """Whether the service manager must reload its definitions after a change of this file."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service as it should be, for one way to run it."""

    name: str
    title: str
    """What messages call it."""
    mode: Mode
    scope: Scope
    argv: tuple[str, ...]
    """A program without a folder is looked up on the machine."""
    env: Mapping[str, str]
    files: tuple[ServiceFile, ...]
    log: str
    """The file that it logs to, if it is not the journal; `~` is the home of the user."""
    log_marks: tuple[str, ...]
    """Texts of the log lines to read since its last start."""
    health: str
    """`host:port` at which it answers."""
    ids: tuple[str, ...] = ()
    """Its names for the service manager, where that has its own."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that sets variables for the next start of a service."""

    path: str
    values: Mapping[str, str]
    ours: bool = False
    wins: bool = False
    """Whether it takes precedence over fleetctl's own file."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service as it was observed."""

    spec: ServiceSpec
    loaded: bool
    """Whether the service manager knows it."""
    creatable: bool = False
    """Whether fleetctl may create it where it does not exist."""
    preference: int = 0
    """The highest of several candidates is chosen."""
    blocked: str = ""
    """Why it cannot be changed now; `hint` says what to do about it."""
    hint: str = ""
    enabled: bool = False
    active: bool = False
    starting: bool = False
    """It is down, and the service manager is about to start it again."""
    pid: int | None = None
    run: str = ""
    """Differs after every start."""
    started: datetime | None = None
    restarts: int = 0
    reload_pending: bool = False
    definition: str = ""
    """The file that defines it."""
    sources: tuple[Source, ...] = ()
    """In order: the last one that sets a variable wins."""
    environment: Mapping[str, str] | Unknown = Unknown("it does not run")
    """Of the running process."""
    log: str | Unknown = Unknown("it does not run")
    """The marked lines of its log."""
    files: Mapping[str, File] = field(default_factory=dict)
    """Its own files and ours, by path."""

    @property
    def scope(self) -> Scope:
        return self.spec.scope

    @property
    def mode(self) -> Mode:
        return self.spec.mode

    @property
    def needs_root_to_read(self) -> bool:
        """Whether root could read more of it."""
        unread = isinstance(self.environment, Unknown) or isinstance(self.log, Unknown)
        return self.active and self.scope == "system" and unread

    def given(self, variable: str) -> str | None:
        """The value in the environment of the running process, if that can be read."""
        known = self.environment
        return known.get(variable) if isinstance(known, Mapping) else None


@dataclass(frozen=True, slots=True)
class Api:
    """What Ollama answers over HTTP."""

    listens: str
    """The address at which it answered."""
    version: str
    models: Mapping[str, str]
    """Digest by name."""

    @property
    def port(self) -> int:
        return address.place_of(self.listens)[1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question printed; each `section NAME` in it is kept apart."""

    status: int
    output: bytes
    sections: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    def section(self, name: str) -> str:
        return self.sections.get(name, b"").decode(errors="replace")


Answers = Mapping[str, Answer]
"""By the keys of the questions that were asked on this machine."""


@dataclass(frozen=True, slots=True)
class Facts:
    host: Host
    services: tuple[Service, ...]
    api: Api | Unknown
    answers: Answers = field(default_factory=dict, repr=False)
    """To the questions of steps; each step reads its own."""
