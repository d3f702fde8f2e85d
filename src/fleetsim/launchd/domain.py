"""A domain: a set of jobs with an environment of their own, of the system or of one user."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetsim.launchd.definition import Definition
from fleetsim.launchd.job import Job
from fleetsim.launchd.site import User

SYSTEM = "system"
SESSIONS = {"system": "System", "user": "Background", "gui": "Aqua"}
"""What `managername` says in a domain, and what an agent must be made for to load there."""


@dataclass(slots=True)
class Domain:
    kind: str
    user: User | None
    asid: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """What `launchctl setenv` has set."""
    jobs: dict[str, Job] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.user.uid}" if self.user else self.kind

    @property
    def session(self) -> str:
        return SESSIONS[self.kind]

    @property
    def described(self) -> str:
        """As error messages name it."""
        return f"user {self.kind}: {self.user.uid}" if self.user else self.kind

    def takes(self, definition: Definition) -> bool:
        return self.kind == SYSTEM or self.session in definition.sessions

    def running(self) -> Iterator[Job]:
        return (job for job in self.jobs.values() if job.state.pid)
