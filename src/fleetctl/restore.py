"""Plans that lead back: to the state before a change, or before fleetctl first changed a node."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fleetctl import services
from fleetctl.model.facts import (
    ABSENT,
    LARGEST_FILE,
    Answer,
    Answers,
    Facts,
    File,
    Scope,
    Service,
    Unknown,
)
from fleetctl.model.fleet import Target
from fleetctl.model.plan import (
    Change,
    DeleteModel,
    Finding,
    Forget,
    Level,
    Plan,
    Restart,
    ServiceAction,
    Stage,
    WriteFile,
)
from fleetctl.shell import NODE_STATE, Question, file_in, survey


@dataclass(frozen=True, slots=True)
class Since:
    """A change of a node, by its number; each scope counts its own."""

    scope: Scope
    number: int


@dataclass(frozen=True, slots=True)
class Backup:
    """What a node keeps of an earlier state."""

    files: Mapping[str, tuple[File, File]] = field(default_factory=dict)
    """By path: the file now, and the file then."""
    disabled: bool = False
    """Whether the service was not started at boot."""
    stopped: bool = False
    """Whether it did not run."""
    displaced: str = ""
    """The mode of the service that fleetctl's displaced."""


Backups = Mapping[Scope, Backup]


def questions(target: Target, since: Since | None) -> list[Question]:
    """The state before that change; None: before fleetctl first changed the node."""
    limit = LARGEST_FILE + 1
    call = f"ask_backups {since.number} {limit}" if since else f"ask_origin {limit}"
    scopes = [since.scope] if since else survey.SCOPES
    return [
        question
        for scope in scopes
        for question in survey.state_questions(target, "backup", call, scope, NODE_STATE)
    ]


def read(answers: Answers) -> Backups:
    return {
        scope: _backup(answer)
        for scope in survey.SCOPES
        if (answer := answers.get(f"backup {scope}")) and answer.status == 0
    }


def _backup(answer: Answer) -> Backup:
    lines = answer.text.splitlines()
    entries = [line.removeprefix("entry ") for line in lines if line.startswith("entry ")]
    files = {
        path: (file_in(answer, path), file_in(answer, old))
        for old, _, path in (entry.partition("\t") for entry in entries)
    }
    displaced = (line.removeprefix("displaced ") for line in lines if line.startswith("displaced "))
    return Backup(files, "disabled" in lines, "stopped" in lines, next(displaced, ""))


def plan_restore(target: Target, facts: Facts) -> Plan:
    """Files as they were, and the service restarted on them."""
    backups = read(facts.answers)
    service, rival = _services(target, facts, backups)
    changes = [("restore", change) for change in _changes(facts, backups, service, rival)]
    findings = list(_unreadable(backups))
    if not backups:
        text = "this node has no backup"
        hint = f"fleetctl history {target.name}"
        findings.append(Finding("RS001", Level.OBSTACLE, text, hint))
    return Plan(target.name, facts, service, rival, tuple(changes), tuple(findings))


def plan_remove(target: Target, facts: Facts, models: frozenset[str]) -> Plan:
    """As if fleetctl had never been there."""
    backups = _with_our_files(facts, read(facts.answers))
    service, rival = _services(target, facts, backups)
    present = models & set(() if isinstance(facts.api, Unknown) else facts.api.models)
    changes: list[Change] = [DeleteModel(model, Stage.API_FIRST) for model in sorted(present)]
    changes += _changes(facts, backups, service, rival)
    changes += (Forget(scope) for scope in backups)
    listed = tuple(("remove", change) for change in changes)
    return Plan(target.name, facts, service, rival, listed, tuple(_unreadable(backups)))


def _with_our_files(facts: Facts, backups: Backups) -> Backups:
    """Files that bear our name did not exist before, also if the node's state was lost."""
    found = dict(backups)
    for service in facts.services:
        for described in service.spec.files:
            path = facts.host.expanded(described.path)
            now = service.files.get(path, ABSENT)
            backup = found.get(service.scope, Backup())
            if "fleetctl" in described.path and (now.content is not None or path in backup.files):
                files = {**backup.files, path: (now, ABSENT)}
                found[service.scope] = replace(backup, files=files)
    return found


def _services(
    target: Target, facts: Facts, backups: Backups
) -> tuple[Service | None, Service | None]:
    """The service that was changed, also if the inventory names another now, and its rival."""
    changed = {path for backup in backups.values() for path in backup.files}
    ours = [service for service in facts.services if changed & _paths(service, facts)]
    named = services.choose(target.node.service, facts) if target.node else None
    service = max(ours, key=lambda each: each.active, default=named)
    displaced = frozenset(backup.displaced for backup in backups.values())
    return service, services.rival(service, facts, displaced) if service else None


def _paths(service: Service, facts: Facts) -> set[str]:
    return {facts.host.expanded(file.path) for file in service.spec.files}


def _changes(
    facts: Facts, backups: Backups, service: Service | None, rival: Service | None
) -> Iterator[Change]:
    own = service.spec.files if service else ()
    defining = {facts.host.expanded(file.path) for file in own if file.defines}
    created_here = service is not None and service.creatable
    stopped = any(backup.stopped for backup in backups.values())
    changed, removed = False, False
    for scope, backup in backups.items():
        for path, (now, then) in backup.files.items():
            before, after = now.content, then.content
            if isinstance(before, Unknown) or isinstance(after, Unknown) or before == after:
                continue
            changed |= service is not None and path in _paths(service, facts)
            # a service that was created here ceases to exist without the file that defines it
            removed |= created_here and after is None and path in defining
            mode = then.permissions if then.mode else 0o644
            yield WriteFile(path, before, after, mode, scope=scope, defines=path in defining)
        if backup.disabled and service and service.enabled and service.scope == scope:
            yield ServiceAction("disable", scope, service.spec.title)
    if changed and service and service.active:
        yield _restarted(service, halt=removed or stopped)
    if removed and service and rival:
        yield ServiceAction("hand_back", service.scope, service.spec.title)


def _restarted(service: Service, *, halt: bool) -> Change:
    scope, title = service.scope, service.spec.title
    if halt:
        return ServiceAction("halt", scope, title)
    return Restart(scope, title, ("its files go back to what they were",))


def _unreadable(backups: Backups) -> Iterator[Finding]:
    for backup in backups.values():
        for path, files in backup.files.items():
            if any(isinstance(file.content, Unknown) for file in files):
                text = f"{path} or its backup cannot be read"
                hint = "log in as a user who may read it, or as root"
                yield Finding("RS002", Level.OBSTACLE, text, hint)
