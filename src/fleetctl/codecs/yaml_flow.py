"""YAML values in flow style on one line, read alike by YAML 1.1 and 1.2 parsers.

Text is always in double quotes, so `NO`, `22:22`, `1.10` and `---` stay text. Printable characters
are literal; the rest is escaped, including line separators and the byte order mark, which parsers
fold or drop.
"""

import re
from collections.abc import Mapping, Sequence

import yaml

from fleetctl.codecs import refuse_nul_and_surrogates

_SPECIAL = re.compile('[\\\\"\x01-\x1f\x7f-\xa0\xad\u2028\u2029\ufeff\ufffe\uffff]')
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def encode(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            refuse_nul_and_surrogates(value, "YAML")
            return '"' + _SPECIAL.sub(_escape, value) + '"'
        case Mapping():
            return "{" + ", ".join(f"{encode(k)}: {encode(v)}" for k, v in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(map(encode, value)) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written as YAML")


def decode(text: str) -> object:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT.get(char) or (f"\\x{ord(char):02x}" if char < "\u0100" else f"\\u{ord(char):04x}")
