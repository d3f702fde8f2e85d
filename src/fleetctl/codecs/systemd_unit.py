"""Values in a systemd unit: `Environment="NAME=value"`, and other settings such as `ExecStart=`.

`encode` writes a value for double quotes: escapes as in C, and `%`, which starts a specifier,
doubled. systemd ignores a wrongly quoted `Environment=` with a line in the journal and starts the
unit without it, so `decode` reads a unit as systemd does (systemd.syntax(7), systemd.service(5)):

- `Environment=` and `Exec…=` are split into words and unquoted. In `Exec…=` a word with `$` is
  expanded later, so it is left out here, and a value with `$` is refused as not found.
- Any other setting is one raw value in which only `%%` means something else, so a value that
  `encode` had to escape is not found, and is refused too.
"""

import re

from fleetctl.codecs import refuse_what_systemd_refuses

_ESCAPES = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"%\x01-\x1f\x7f]')
_ESCAPED = re.compile(r"%%|\\x([0-9a-f]{2})|\\(.)")
_CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_SETTING = re.compile(r"^[ \t]*([A-Za-z]+)[ \t]*=[ \t]*([^\n]*?)[ \t]*$", re.ASCII | re.MULTILINE)
_WORD = re.compile(
    r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^ \t"'\\]+))(?=[ \t]|\Z)"""
)
_EXEC_PREFIX = "@-:+!|"
_MAY_BE_MISSING = ("EnvironmentFile", "WorkingDirectory")
"""Settings in which a leading `-` is not part of the path."""


def encode(value: str) -> str:
    """The value between double quotes, as in `Environment="NAME=…"`."""
    refuse_what_systemd_refuses(value, "a systemd unit")
    return _SPECIAL.sub(lambda match: _escape(match[0]), value)


def decode(text: str) -> dict[str, str | list[str]]:
    """Environment variables by name, and the values of all other settings as lists by their key."""
    environment: dict[str, str] = {}
    settings: dict[str, list[str]] = {}
    for key, raw in _SETTING.findall(_CONTINUATION.sub(r"\1 ", text)):
        if key == "Environment":
            environment |= {word.partition("=")[0]: word.partition("=")[2] for word in _words(raw)}
        else:
            settings.setdefault(key, []).extend(_values(key, raw))
    return {**settings, **environment}


def _values(key: str, raw: str) -> list[str]:
    if not key.startswith("Exec"):
        raw = raw.removeprefix("-") if key in _MAY_BE_MISSING else raw
        return [raw.replace("%%", "%")]
    words = _words(raw)
    words[:1] = [word.lstrip(_EXEC_PREFIX) for word in words[:1]]
    return [word for word in words if "$" not in word]


def _words(raw: str) -> list[str]:
    """Nothing where the quoting is wrong, as in systemd."""
    words, at = [], 0
    while match := _WORD.match(raw, at):
        words.append(
            _ESCAPED.sub(_unescape, next(part for part in match.groups() if part is not None))
        )
        at = match.end()
    return words if at == len(raw) else []


def _escape(char: str) -> str:
    return _ESCAPES.get(char) or f"\\x{ord(char):02x}"


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return {"n": "\n", "t": "\t"}.get(match[2], match[2]) if match[2] else "%"
