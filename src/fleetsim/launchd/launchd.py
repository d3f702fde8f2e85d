"""launchd: its domains, the jobs loaded in them, and the permission to change them."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleetsim.launchd.definition import Definition, read_definition
from fleetsim.launchd.job import Job, JobContext
from fleetsim.launchd.site import DisabledStore, Site, User
from fleetsim.launchd.variant import LaunchError, Variant
from fleetsim.processes import Account, parent_of, session_of

SYSTEM = "system"
SESSIONS = {"system": "System", "user": "Background", "gui": "Aqua"}
"""By kind of domain: what `managername` prints, and the session type that an agent must allow to be
loaded there."""
_ROOT = Account(0, 0)
_FIRST_ASID = 100_000


@dataclass(slots=True)
class Domain:
    """A set of jobs with an environment of its own, for the system or for one user."""

    kind: str
    user: User | None
    asid: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """Variables set by `launchctl setenv`."""
    jobs: dict[str, Job] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.user.uid}" if self.user else self.kind

    @property
    def session(self) -> str:
        return SESSIONS[self.kind]

    @property
    def described(self) -> str:
        """The domain's name in error messages."""
        return f"user {self.kind}: {self.user.uid}" if self.user else self.kind

    def accepts(self, definition: Definition) -> bool:
        return self.kind == SYSTEM or self.session in definition.sessions

    def running(self) -> Iterator[Job]:
        return (job for job in self.jobs.values() if job.state.pid)


class Launchd:
    """Every public method is thread-safe."""

    def __init__(self, site: Site, variant: Variant) -> None:
        self.site = site
        self.variant = variant
        self.disabled = DisabledStore(site.store)
        self._changed = threading.Condition(threading.RLock())
        self._domains: dict[str, Domain] = {}
        self._process_domains: dict[int, Domain] = {}
        """By pid: the domain that the process and its children belong to."""
        self._asid = _FIRST_ASID

    def vary(self, **changes: Any) -> None:
        self.variant = replace(self.variant, **changes)

    # --- boot and logins ---

    def boot(self) -> None:
        with self._changed:
            system = self._open(SYSTEM, None)
            self._load_all(system, _plists(self.site.daemons))

    def open_background(self, user: User) -> None:
        """Open the user's domain. Any login does; it stays open until shutdown."""
        with self._changed:
            if f"user/{user.uid}" not in self._domains:
                self._load_all(self._open("user", user), self._agents(user))

    def log_in(self, user: User) -> None:
        """Log in at the screen."""
        with self._changed:
            if f"gui/{user.uid}" in self._domains:
                return
            gui = self._open("gui", user)
            self._load_all(gui, [*self._agents(user), *_plists(self.site.login_items, links=True)])
            self.open_background(user)

    def log_out(self, user: User, seconds: float = 1.0) -> None:
        with self._changed:
            if domain := self._domains.get(f"gui/{user.uid}"):
                self._stop_jobs([domain], seconds)
                del self._domains[domain.name]

    def shut_down(self, seconds: float) -> None:
        with self._changed:
            self._stop_jobs(list(self._domains.values()), seconds)
            self._domains.clear()
            self._process_domains.clear()

    @property
    def console(self) -> User | None:
        """The user logged in at the screen."""
        with self._changed:
            found = [domain.user for domain in self._domains.values() if domain.kind == "gui"]
            return found[0] if found else None

    # --- lookup ---

    def domain(self, name: str) -> Domain:
        """The domain of this name. If it does not exist: the release's error, or 112."""
        with self._changed:
            if name in self._domains:
                return self._domains[name]
        raise LaunchError(self.variant.no_gui or 112)

    @contextmanager
    def job(self, domain: str, label: str) -> Iterator[tuple[Domain, Job]]:
        """A loaded job, to read or change it under the lock. Error 113 if it is not loaded."""
        with self._changed:
            where = self.domain(domain)
            if label not in where.jobs:
                raise LaunchError(113)
            yield where, where.jobs[label]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, so that nothing changes meanwhile."""
        with self._changed:
            yield

    def domain_of(self, pid: int, uid: int) -> Domain:
        """The domain of a process, which `setenv` changes. Children inherit it: it is the domain of
        the job that the process descends from, or user/UID for a login over SSH."""
        with self._changed:
            current = pid
            while current > 1:
                if domain := self._process_domains.get(current):
                    return domain
                current = parent_of(current)
            if domain := self._process_domains.get(session_of(pid)):
                return domain
        return self.domain(SYSTEM if uid == 0 else f"user/{uid}")

    def move_process(self, pid: int, domain: Domain) -> None:
        """Move a process to the domain, as `launchctl asuser` does."""
        with self._changed:
            self._process_domains[pid] = domain

    # --- changes ---

    def bootstrap(self, name: str, path: Path) -> None:
        if name.startswith("gui/") and name not in self._domains and self.variant.no_gui == 0:
            return
        domain = self.domain(name)
        definition = read_definition(path, self.site.refuse)
        with self._changed:
            if not self._is_trusted(path, domain):
                raise LaunchError(self.variant.bad_mode)
            if self._is_disabled(domain, definition):
                raise LaunchError(self.variant.disabled)
            if not domain.accepts(definition):
                raise LaunchError(self.variant.wrong_session)
            if definition.label in domain.jobs:
                raise LaunchError(self.variant.already_loaded)
            self._load(domain, definition)

    def bootout(self, name: str, label: str, *, wait: bool = False) -> None:
        with self._changed:
            domain = self.domain(name)
            job = domain.jobs.get(label)
            if job is None:
                raise LaunchError(3)
            job.unload()
            if wait:
                self._changed.wait_for(lambda: domain.jobs.get(label) is not job)
            elif self.variant.bootout and label in domain.jobs:
                raise LaunchError(self.variant.bootout)

    def open_application(
        self, user: User, definition: Definition, environment: Mapping[str, str]
    ) -> None:
        """Start an application: a job of the gui domain without a plist."""
        with self._changed:
            self._load(self.domain(f"gui/{user.uid}"), definition, environment)

    # --- private ---

    def _open(self, kind: str, user: User | None) -> Domain:
        domain = Domain(kind, user)
        if kind == "gui":
            self._asid += 1
            domain.asid = self._asid
        self._domains[domain.name] = domain
        return domain

    def _agents(self, user: User) -> list[Path]:
        return [*_plists(self.site.agents), *_plists(user.agents)]

    def _load_all(self, domain: Domain, paths: Iterable[Path]) -> None:
        """Load plists at boot or login; those that cannot be loaded are skipped."""
        for path in paths:
            with suppress(LaunchError):
                definition = read_definition(path, self.site.refuse)
                if self._should_load(domain, definition) and self._is_trusted(path, domain):
                    self._load(domain, definition)

    def _should_load(self, domain: Domain, definition: Definition) -> bool:
        siblings = [
            other
            for other in self._domains.values()
            if other is domain or (other.user == domain.user and not self.variant.loads_twice)
        ]
        loaded = any(definition.label in other.jobs for other in siblings)
        disabled = self._is_disabled(domain, definition)
        return domain.accepts(definition) and not loaded and not disabled

    def _load(
        self, domain: Domain, definition: Definition, extra: Mapping[str, str] | None = None
    ) -> None:
        account = domain.user.account if domain.user else self._daemon_account(definition)
        context = JobContext(
            account,
            lambda: self._environment(domain, definition),
            self.site.program,
            lambda: self.variant,
            lambda pid: self.move_process(pid, domain),
            lambda job: self._remove(domain, job),
        )
        job = domain.jobs[definition.label] = Job(definition, context, self._changed, extra)
        if (definition.run_at_load or definition.keep_alive) and not self.variant.stays_idle:
            job.start()

    def _remove(self, domain: Domain, job: Job) -> None:
        if domain.jobs.get(job.definition.label) is job:
            del domain.jobs[job.definition.label]
        self._changed.notify_all()

    def _daemon_account(self, definition: Definition) -> Account:
        user = self.site.named(definition.user)
        if definition.user and user is None:
            raise LaunchError(5)
        return user.account if user else _ROOT

    def _environment(self, domain: Domain, definition: Definition) -> dict[str, str]:
        user = domain.user or self.site.named(definition.user)
        return {
            **self.site.mark,
            **domain.environment,
            "PATH": domain.environment.get("PATH", self.site.path),
            **(user.identity if user else {}),
        }

    def _is_trusted(self, path: Path, domain: Domain) -> bool:
        """Whether only the domain's user or root owns and can write the plist."""
        status = path.stat()
        owners = (0, domain.user.uid) if domain.user else (0,)
        return status.st_uid in owners and not status.st_mode & 0o022

    def owner(self, domain: str) -> str:
        """The owner of the domain's disabled labels; gui and user domains share one store."""
        return domain.partition("/")[2] or "system"

    def _is_disabled(self, domain: Domain, definition: Definition) -> bool:
        stored = self.disabled.all(self.owner(domain.name))
        return stored.get(definition.label, definition.disabled)

    def _stop_jobs(self, domains: list[Domain], seconds: float) -> None:
        for domain in domains:
            for job in list(domain.jobs.values()):
                job.unload(seconds)
        self._changed.wait_for(lambda: not any(domain.jobs for domain in domains))


def _plists(folder: Path, *, links: bool = False) -> list[Path]:
    """Plists in a folder. At a login launchd skips symbolic links, unless with `links`."""
    if not folder.is_dir():
        return []
    found = [path for path in sorted(folder.glob("*.plist")) if links or not path.is_symlink()]
    return [Path(os.path.realpath(path)) for path in found if path.exists()]
