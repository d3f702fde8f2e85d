"""What would stop a new machine from becoming a node; asked by the step `preflight`."""

import re

from fleetctl.audit import Audited, Found, check
from fleetctl.model import address
from fleetctl.model.facts import Api, Unknown
from fleetctl.model.plan import Level

_LEAST_KILOBYTES = 50_000
"""What a file system must have left for configuration and backups."""

_FLOOR = (0, 17, 1)
"""Older versions let anyone who reaches the port read the server's memory (CVE-2026-7482)."""


@check("PF001", Level.OBSTACLE, "root is needed and cannot be had")
def _sudo(audited: Audited) -> Found:
    seen, service = audited.preflight, audited.service
    if seen is None or service is None or service.scope != "system" or audited.has_sudo_password:
        return
    if seen.sudo == "refused":
        yield "sudo needs a password", ways_to_root(audited.facts.host.user)
    elif seen.sudo == "absent":
        text = "Ollama is a service of the system, and there is no sudo"
        yield text, "log in as root, or install sudo"


def ways_to_root(user: str) -> str:
    """What to do where sudo refuses."""
    rule = f"{user} ALL=(root) NOPASSWD: ALL"
    return f"use -K, or put this into /etc/sudoers.d/fleetctl there: {rule}"


@check("PF002", Level.OBSTACLE, "a file system is full")
def _disk(audited: Audited) -> Found:
    for folder, left in (audited.preflight.free if audited.preflight else {}).items():
        if left < _LEAST_KILOBYTES:
            yield f"{folder} has only {left} kB left", "free some space there"


@check("PF003", Level.OBSTACLE, "the port is taken")
def _port(audited: Audited) -> Found:
    _, wanted = address.place_of(audited.node.listens)
    api, seen = audited.facts.api, audited.preflight
    if seen and wanted in seen.ports and not (isinstance(api, Api) and api.port == wanted):
        text = f"port {wanted} is taken by a program that is not Ollama"
        yield text, "stop it, or choose another port in ollama.host"


@check("PF004", Level.OBSTACLE, "Ollama has a known vulnerability")
def _old_version(audited: Audited) -> Found:
    version = _version(audited)
    if version and (found := _parsed(version)) and found < _FLOOR:
        text = f"Ollama {version} is older than {_floor()}, which fixes known vulnerabilities"
        yield text, "update it there"


@check("PF005", Level.WARNING, "the version of Ollama cannot be compared")
def _unknown_version(audited: Audited) -> Found:
    version = _version(audited)
    if version is not None and _parsed(version) is None:
        yield f"the version {version!r} of Ollama is not known", f"it should be {_floor()} or newer"


def _version(audited: Audited) -> str | None:
    api = audited.facts.api
    return None if audited.preflight is None or isinstance(api, Unknown) else api.version


def _parsed(version: str) -> tuple[int, ...] | None:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else None


def _floor() -> str:
    return ".".join(map(str, _FLOOR))
