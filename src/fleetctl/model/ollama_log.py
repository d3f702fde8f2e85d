"""What Ollama writes into its log about itself; the same text on every system."""

import json
import re
from collections.abc import Mapping
from datetime import datetime

from fleetctl.model.facts import Service, Unknown

MARKS = ('msg="server config"', 'msg="inference compute"')
"""The lines that are read: the values in use, and the devices that were found."""

_CONFIG = re.compile(r'msg="server config" env=("map\[(?:[^"\\]|\\.)*\]"|map\[[^ ]*\])')
_KEY = re.compile(r"(?:^|(?<= ))([A-Z][A-Z0-9_]*|https?_proxy|no_proxy):")


def effective(service: Service) -> Mapping[str, str] | Unknown:
    """The values that the server uses, by its own log since it was started."""
    if isinstance(service.log, Unknown):
        return service.log
    values, moment = config(service.log), _moment(service.log)
    if values is None:
        return Unknown("its log does not show them")
    if service.started is not None:
        if moment is None:
            return Unknown("its log does not show them")
        # the process list has whole seconds
        if moment.timestamp() < service.started.timestamp() - 1:
            return Unknown("its log does not show them since its last start")
    return values


def seen(service: Service, variable: str) -> str | None:
    """What the running server uses, as far as it is known."""
    for known in (effective(service), service.environment):
        if isinstance(known, Mapping) and variable in known:
            return known[variable]
    return None


def config(log: str) -> dict[str, str] | None:
    """The values of the last `server config` line; None without one."""
    lines = _CONFIG.findall(log)
    if not lines:
        return None
    text = lines[-1]
    if text.startswith('"'):
        try:
            text = json.loads(text, strict=False)
        except ValueError:
            return None
    inner = text.removeprefix("map[").removesuffix("]")
    keys = list(_KEY.finditer(inner))
    ends = [key.start() for key in keys[1:]] + [len(inner)]
    return {key[1]: inner[key.end() : end].strip() for key, end in zip(keys, ends, strict=True)}


def _moment(log: str) -> datetime | None:
    times = re.findall(r'^time=(\S+) .*msg="server config"', log, re.MULTILINE)
    try:
        return datetime.fromisoformat(times[-1]) if times else None
    except ValueError:
        return None


def devices(service: Service) -> list[str]:
    """The libraries of the devices that it found at its last start: CUDA, Metal, cpu."""
    log = "" if isinstance(service.log, Unknown) else service.log
    last = log.rpartition('msg="server config"')[2]
    return re.findall(r'msg="inference compute".*? library=(\S+)', last)


def is_routine(line: str) -> bool:
    """Whether a line of the log is of the kind that every start writes."""
    return " level=INFO " in line
