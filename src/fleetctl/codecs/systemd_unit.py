"""`Environment="NAME=value"` in a systemd unit.

A wrongly quoted assignment is ignored by systemd with a line in the journal, and the unit starts
without it. Backslashes and quotes are escaped as in C, `%` starts a specifier and is doubled.
"""

from __future__ import annotations

import re

from fleetctl.codecs import refuse_what_systemd_refuses

_ESCAPES = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"%\x01-\x1f\x7f]')
_WRITTEN = re.compile(r"%%|\\x([0-9a-f]{2})|\\(.)")
_ASSIGNMENT = re.compile(r'^Environment="(\w+)=((?:[^"\\]|\\.)*)"$', re.ASCII | re.MULTILINE)


def encode(value: str) -> str:
    """The value between the quotes of `Environment="NAME=…"`."""
    refuse_what_systemd_refuses(value, "a systemd unit")
    return _SPECIAL.sub(lambda match: _escape(match[0]), value)


def decode(text: str) -> dict[str, str]:
    return {name: _WRITTEN.sub(_unescape, raw) for name, raw in _ASSIGNMENT.findall(text)}


def _escape(char: str) -> str:
    return _ESCAPES.get(char) or f"\\x{ord(char):02x}"


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return {"n": "\n", "t": "\t"}.get(match[2], match[2]) if match[2] else "%"
