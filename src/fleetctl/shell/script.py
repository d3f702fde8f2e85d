"""Building scripts out of parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fleetctl.codecs import sh

COMMAND = "/bin/sh -s"
"""The only command that is ever run on a node. Whatever the login shell, it never sees our data."""

ALIVE = Path(__file__).with_name("alive.sh").read_text()
"""Shell that can tell whether the holder of a lock is alive."""

AS_ROOT = """\
as_root() { [ "$(id -u)" != 0 ] && command -v sudo >/dev/null && sudo -n "$@" 2>/dev/null; }"""
"""Shell for what only root may see. sudo is never asked for a password."""

quote = sh.encode

# A Mac's SSH session knows only the system's folders; what is there already is never replaced.
PRELUDE = """\
LC_ALL=C; export LC_ALL
PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/sbin:/sbin:/opt/homebrew/bin; export PATH
umask 077"""

# `dd` makes one large piece of many small ones, each of which would be a packet of its own.
_FRAME = """\
fleetctl() {{
{prelude}
system=$(uname -s)
answer() {{
printf '\\n@@{nonce} > %s\\n' "$1"
( "part_$2" ) </dev/null
printf '\\n@@{nonce} < %s %s\\n' "$1" "$?"
}}
section() {{ printf '\\n@@{nonce} + %s\\n' "$1"; }}
{definitions}
{calls}
printf '\\n@@{nonce} .\\n'
}}
{{ fleetctl | dd ibs=65536 obs=65536 2>/dev/null; exit 0; }}
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Commands whose output is filed under a key; they may fail without harm to the others.

    `section NAME` in them begins a part of the output that is kept apart.
    """

    key: str
    commands: str
    system: str | None = None
    """What uname must say for it to be asked at all."""
    for_root: bool = False
    """Whether root may see more."""


def script(parts: Iterable[Part], nonce: str) -> str:
    numbered = list(enumerate(parts))
    return _FRAME.format(
        prelude=PRELUDE,
        nonce=nonce,
        definitions="\n".join(f"part_{at}() {{\n{part.commands}\n}}" for at, part in numbered),
        calls="\n".join(_call(part, at) for at, part in numbered),
    )


def _call(part: Part, at: int) -> str:
    call = f"answer {quote(part.key)} {at}"
    return f'[ "$system" != {quote(part.system)} ] || {call}' if part.system else call
