"""What fleetctl keeps on a node of how things were, and the plans that lead back there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from fleetctl import backends
from fleetctl.model.facts import Facts, File, Kept, Scope, Service, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import (
    Change,
    DeleteModel,
    Finding,
    Forget,
    Level,
    NodePlan,
    Restart,
    Supervise,
    WriteFile,
)
from fleetctl.shell import AS_ROOT, Part, Record
from fleetctl.shell.survey import find_state

_SHOW = r"""
{as_root}
show() {{
  [ -r "$1/path" ] || return 0
  IFS= read -r path <"$1/path"
  section "was $path"; ls -ldn "$1/old" 2>/dev/null
  section "held $path"; hold "$1/old"
  section "is $path"; ls -ldn "$path" 2>/dev/null || as_root ls -ldn "$path"
  section "holds $path"; hold "$path"
}}
hold() {{
  {{ [ -f "$1" ] && cat "$1"; }} 2>/dev/null ||
    as_root /bin/sh -c '[ -f "$1" ] && cat "$1"' sh "$1" || echo @unreadable
}}
{find_state}
[ -d "$state" ] || exit 1
{walk}
"""
_ORIGIN = """
[ ! -e "$state/origin/disabled" ] || echo disabled
[ ! -e "$state/origin/stopped" ] || echo stopped
[ ! -r "$state/origin/displaced" ] || sed 's/^/displaced /' "$state/origin/displaced"
for entry in "$state"/origin/*/; do show "$entry"; done"""

# Newest first, so that the oldest copy of a file is the last word.
_SINCE = """
for number in $(ls "$state/backups" | sort -rn); do
  [ "$number" -lt {number} ] || for entry in "$state/backups/$number"/*/; do show "$entry"; done
done"""


@dataclass(frozen=True, slots=True)
class Since:
    """A change of a node; each scope counts its own."""

    scope: Scope
    number: int


def parts(since: Since | None) -> list[Part]:
    """How files were before that change; None: before fleetctl came."""
    scopes = [since.scope] if since else get_args(Scope)
    walk = _SINCE.format(number=since.number) if since else _ORIGIN
    return [
        Part(
            f"kept {scope}",
            _SHOW.format(as_root=AS_ROOT, find_state=find_state(scope), walk=walk),
            for_root=scope == "system",
        )
        for scope in scopes
    ]


def read(records: Mapping[str, Record]) -> dict[Scope, Kept]:
    return {
        scope: _kept(record)
        for scope in get_args(Scope)
        if (record := records.get(f"kept {scope}")) and record.status == 0
    }


def _kept(record: Record) -> Kept:
    paths = [name.partition(" ")[2] for name in record.sections if name.startswith("was ")]
    return Kept(
        files={
            path: (_file(record, "is", "holds", path), _file(record, "was", "held", path))
            for path in paths
        },
        disabled="disabled" in record.text.split(),
        stopped="stopped" in record.text.split(),
        displaced=record.text.partition("displaced ")[2].partition("\n")[0],
    )


def _file(record: Record, mode: str, content: str, path: str) -> File:
    return File.listed(record.sections[f"{content} {path}"], record.section(f"{mode} {path}"))


def plan_restore(node: Node, facts: Facts) -> NodePlan:
    """Files as they were, and Ollama restarted on them."""
    service = _service_of(node, facts)
    changes = [("restore", change) for change in _files_back(service, facts)]
    findings = list(_unreadable(facts))
    if not facts.kept:
        text = "there is no backup on this node"
        findings.append(Finding(Level.OBSTACLE, text, f"fleetctl history {node.name}"))
    return NodePlan(node.name, facts, service, tuple(changes), tuple(findings))


def plan_remove(node: Node, facts: Facts, models: frozenset[str]) -> NodePlan:
    """As if fleetctl had never been there."""
    facts = replace(facts, kept=_with_all_of_ours(facts))
    service = _service_of(node, facts)
    there = models & set(() if isinstance(facts.api, Unknown) else facts.api.models)
    changes: list[Change] = [DeleteModel(model) for model in sorted(there)]
    changes += _files_back(service, facts)
    changes += (Forget(scope == "system") for scope in facts.kept)
    listed = tuple(("remove", change) for change in changes)
    return NodePlan(node.name, facts, service, listed, tuple(_unreadable(facts)))


def _with_all_of_ours(facts: Facts) -> dict[Scope, Kept]:
    """What bears our name was not there before, also if what the node keeps was lost once."""
    found = dict(facts.kept)
    for service in facts.services:
        for file in backends.files(service):
            path = facts.host.expanded(file.path)
            now = service.files.get(path, File(None))
            kept = found.get(service.scope, Kept({}))
            if "fleetctl" in file.path and (now.content is not None or path in kept.files):
                files = {**kept.files, path: (now, File(None))}
                found[service.scope] = replace(kept, files=files)
    return found


def _service_of(node: Node, facts: Facts) -> Service | None:
    """The service that was changed, which the inventory may have ceased to name since."""
    changed = {path for kept in facts.kept.values() for path in kept.files}
    ours = (service for service in facts.services if changed & _paths(service, facts))
    return max(ours, key=lambda each: each.active, default=backends.service_of(node, facts))


def _paths(service: Service, facts: Facts) -> set[str]:
    return {facts.host.expanded(file.path) for file in backends.files(service)}


def _files_back(service: Service | None, facts: Facts) -> Iterator[Change]:
    known = backends.files(service) if service else ()
    defining = {facts.host.expanded(file.path) for file in known if file.defines}
    made_here = service is not None and service.creatable
    stopped = any(kept.stopped for kept in facts.kept.values())
    changed, unmade = False, False
    for scope, kept in facts.kept.items():
        as_root = scope == "system"
        for path, (now, then) in kept.files.items():
            before, after = now.content, then.content
            if isinstance(before, Unknown) or isinstance(after, Unknown) or before == after:
                continue
            changed |= service is not None and path in _paths(service, facts)
            # a service that was made here is none any more without the file that defines it
            unmade |= made_here and after is None and path in defining
            mode = then.permissions if then.mode else 0o644
            yield WriteFile(path, before, after, mode, as_root=as_root, defines=path in defining)
        if kept.disabled and service and service.enabled and service.as_root == as_root:
            yield Supervise("disable", as_root)
    if changed and service and service.active:
        why = ("its files go back to what they were",)
        halt = unmade or stopped
        yield Supervise("halt", service.as_root) if halt else Restart(service.as_root, why)
    if unmade and service and backends.rival(service, facts):
        yield Supervise("hand_back", service.as_root)


def _unreadable(facts: Facts) -> Iterator[Finding]:
    for kept in facts.kept.values():
        for path, files in kept.files.items():
            if any(isinstance(file.content, Unknown) for file in files):
                text = f"{path} or its backup may not be read"
                yield Finding(Level.OBSTACLE, text, "log in as a user who may, or as root")
