"""preflight: everything that could stop a new machine from becoming a node, before any write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleetctl.model import address
from fleetctl.model.facts import Api, Facts, Preflight, Unknown
from fleetctl.model.plan import Change, Finding, Level
from fleetctl.shell import Part, Record, ports
from fleetctl.steps import Step, Subject

_LEAST = 50_000
"""Kilobytes that a file system must have left for configuration and backups."""

_FLOOR = (0, 17, 1)
"""Before it anybody who reaches the port can read the server's memory (CVE-2026-7482)."""

SUDO_RULE = "{user} ALL=(root) NOPASSWD: ALL"

# sudo is only asked whether it would; nothing is done by it.
_ASK = r"""
if [ "$(id -u)" = 0 ]; then echo root
elif ! command -v sudo >/dev/null; then echo absent
elif sudo -n true 2>/dev/null; then echo free
else echo refused; fi
section disk; df -Pk /etc /var "$HOME" 2>/dev/null
section ports
"""


class PreflightStep(Step):
    def probe(self, name: str) -> list[Part]:
        return [Part("preflight", _ASK + ports.ask("LISTEN"))]

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        seen = subject.facts.preflight
        if seen is None:
            return
        yield from _sudo(seen, subject)
        for folder, left in seen.free.items():
            if left < _LEAST:
                text = f"{folder} has only {left} kB left"
                yield Finding(Level.OBSTACLE, text, "make room there")
        yield from _port(seen, subject)
        yield from _version(subject.facts)


def _sudo(seen: Preflight, subject: Subject) -> Iterator[Finding]:
    service = subject.service
    if service is None or not service.as_root or subject.elevates:
        return
    rule = SUDO_RULE.format(user=subject.facts.host.user)
    if seen.sudo == "refused":
        fix = f"use -K, or put this into /etc/sudoers.d/fleetctl there: {rule}"
        yield Finding(Level.OBSTACLE, "sudo needs a password", fix)
    elif seen.sudo == "absent":
        text = "Ollama is a service of the system, and there is no sudo"
        yield Finding(Level.OBSTACLE, text, "log in as root, or install sudo")


def _port(seen: Preflight, subject: Subject) -> Iterator[Finding]:
    """The port that Ollama shall have, if it has it not yet and somebody else has."""
    _, wanted = address.place_of(subject.node.listens)
    api = subject.facts.api
    if wanted in seen.ports and not (isinstance(api, Api) and api.port == wanted):
        text = f"port {wanted} is taken by something that is not Ollama"
        yield Finding(Level.OBSTACLE, text, "stop that, or choose another port in ollama.host")


def _version(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.api, Unknown):
        return
    floor = ".".join(map(str, _FLOOR))
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", facts.api.version)
    if found is None:
        text = f"the version {facts.api.version!r} of Ollama means nothing to fleetctl"
        yield Finding(Level.WARNING, text, f"it should be {floor} or newer")
    elif tuple(map(int, found.groups())) < _FLOOR:
        text = f"Ollama {facts.api.version} is older than {floor}, which has holes closed"
        yield Finding(Level.OBSTACLE, text, "update it there")


def read(records: Mapping[str, Record]) -> Preflight | None:
    record = records.get("preflight")
    if record is None:
        return None
    rows = [line.split() for line in record.section("disk").splitlines()]
    free = {row[5]: int(row[3]) for row in rows if len(row) > 5 and row[3].isdecimal()}
    return Preflight(record.text.strip(), free, frozenset(ports.read(record.section("ports"))))
