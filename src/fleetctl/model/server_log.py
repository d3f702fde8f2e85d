"""What Ollama writes into its log about itself; the same text on every system."""

from __future__ import annotations

import json
import re
from datetime import datetime

_CONFIG = re.compile(r'msg="server config" env=("map\[(?:[^"\\]|\\.)*\]"|map\[[^ ]*\])')
_KEY = re.compile(r"(?:^|(?<= ))([A-Z][A-Z0-9_]*|https?_proxy|no_proxy):")


def effective(log: str) -> dict[str, str] | None:
    """The values that the server uses, by the last `server config` line; None without one."""
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


def moment(log: str) -> datetime | None:
    """When the last `server config` line was written."""
    times = re.findall(r'^time=(\S+) .*msg="server config"', log, re.MULTILINE)
    try:
        return datetime.fromisoformat(times[-1]) if times else None
    except ValueError:
        return None


def only_informs(line: str) -> bool:
    """Whether a line of the log is of the kind that every start writes."""
    return " level=INFO " in line


def computes_on(log: str) -> list[str]:
    """The libraries of the devices that it found at its last start: CUDA, Metal, cpu."""
    last = log.rpartition('msg="server config"')[2]
    return re.findall(r'msg="inference compute".*? library=(\S+)', last)
