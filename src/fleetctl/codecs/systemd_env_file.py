"""systemd's `EnvironmentFile=`: lines of `NAME="value"`.

systemd reads it by its own rules, not a shell's. Between double quotes a backslash makes the next
character literal; everything else (line breaks, `%`, `'`) is literal already.
"""

import re

from fleetctl.codecs import refuse_what_systemd_refuses

_SPECIAL = re.compile(r'([\\"$`])')
_ASSIGNMENT = re.compile(r'^(\w+)="((?:[^"\\]|\\.)*)"$', re.ASCII | re.DOTALL | re.MULTILINE)


def encode(value: str) -> str:
    refuse_what_systemd_refuses(value, "a systemd environment file")
    return '"' + _SPECIAL.sub(r"\\\1", value) + '"'


def decode(text: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\(.)", r"\1", raw, flags=re.DOTALL)
        for name, raw in _ASSIGNMENT.findall(text)
    }
