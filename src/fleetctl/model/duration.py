"""Durations as Go, and so Ollama, reads and writes them: `1h30m`, `24h0m0s`, `1.5s`."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)")
_WHOLE = re.compile(rf"[+-]?(?:{_TERM.pattern})+", re.ASCII)
LONGEST = 2**63 - 1
"""Go's longest duration in nanoseconds (292 years); Ollama logs forever as this."""


def parse(text: str) -> int:
    """Nanoseconds; a bare integer is seconds, as Ollama has it for OLLAMA_KEEP_ALIVE."""
    if re.fullmatch(r"[+-]?\d{1,12}", text, re.ASCII):
        nanoseconds = int(text) * _UNITS["s"]
    elif _WHOLE.fullmatch(text) and len(text) <= 64:
        size = sum(int(Decimal(n) * _UNITS[unit]) for n, unit in _TERM.findall(text))
        nanoseconds = -size if text.startswith("-") else size
    else:
        raise ValueError("is not a duration; write it like 30m, 24h or 1h30m")
    if abs(nanoseconds) > LONGEST:
        raise ValueError("is longer than 292 years; write -1 (forever)")
    return nanoseconds


def to_text(nanoseconds: int) -> str:
    """As Go's `Duration.String`, so that it can be compared with what Ollama logs."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < _UNITS["s"]:
        unit = next(name for name in ("ms", "µs", "ns") if rest >= _UNITS[name])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, _UNITS['s'])}s"


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    digits = str(part).zfill(len(str(unit)) - 1).rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)


def shortened(text: str) -> str:
    """Without trailing zeros: `24h` for Go's `24h0m0s`."""
    return re.sub(r"(?<=h)0m$", "", re.sub(r"(?<=m)0s$", "", text))
