"""Durations as Go reads and writes them, in nanoseconds."""

import re

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
FOREVER = 2**63 - 1

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": SECOND,
    "m": MINUTE,
    "h": 60 * MINUTE,
}
_PART = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)")


def parse_duration(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0
    while rest:
        part = _PART.match(rest)
        assert part is not None  # every piece of the pattern is optional
        whole, fraction, unit = part.groups()
        if not whole and not fraction:
            raise ValueError(f'time: invalid duration "{text}"')
        if not unit:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
        total += int(whole or "0") * _UNITS[unit]
        if fraction:
            total += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        rest = rest[part.end() :]
    if total > FOREVER:
        raise ValueError(f'time: invalid duration "{text}"')
    return sign * total


def format_duration(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS[unit])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    minutes, rest = divmod(rest, MINUTE)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = str(fraction).zfill(len(str(unit)) - 1).rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
