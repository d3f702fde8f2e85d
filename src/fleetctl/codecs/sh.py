"""`export NAME=value` for a file that shells source: dash, bash, zsh, busybox sh, ksh, fish.

fish reads `\\` inside single quotes as an escape and the others do not, so a backslash is written
in double quotes of its own, which all of them read alike.
"""

import re

from fleetctl.codecs import refuse_nul_and_surrogates

_PIECE = re.compile(r"""'([^'\\]*)'|"(\\\\|')\"""")
_ASSIGNMENT = re.compile(rf"^export (\w+)=((?:{_PIECE.pattern})+)$", re.ASCII | re.MULTILINE)


def encode(value: str) -> str:
    refuse_nul_and_surrogates(value, "a shell file")
    quoted = value.replace("\\", "\0").replace("'", "'\"'\"'").replace("\0", "'\"\\\\\"'")
    return f"'{quoted}'"


def decode(text: str) -> dict[str, str]:
    return {
        match[1]: "".join(plain or special[-1:] for plain, special in _PIECE.findall(match[2]))
        for match in _ASSIGNMENT.finditer(text)
    }
