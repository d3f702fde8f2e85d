"""How systemd splits a setting into words: quotes, C escapes and specifiers."""

from collections.abc import Mapping

_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "s": " ",
}  # fmt: skip
_NUMERIC = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}


class BadSyntax(ValueError):
    """The assignment is ignored."""


class UnknownSpecifier(ValueError):
    """The word is ignored."""


def split(text: str) -> list[str]:
    """Words separated by blanks. Quotes may start anywhere, and escapes count inside both kinds."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            unescaped, position = _unescape(text, position)
            word = (word or "") + unescaped
        elif quote:
            if character == quote:
                quote = ""
            else:
                word = (word or "") + character
        elif character in "\"'":
            quote, word = character, word or ""
        elif character in " \t\n\r":
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + character
    if quote:
        raise BadSyntax("Invalid syntax")
    return [*words, word] if word is not None else words


def expand(text: str, specifiers: Mapping[str, str]) -> str:
    """`%h` and its kind."""
    parts = text.split("%")
    result = parts[0]
    rest = iter(parts[1:])
    for part in rest:
        if not part:
            result += "%" + next(rest, "")
        elif part[0] in specifiers:
            result += specifiers[part[0]] + part[1:]
        else:
            raise UnknownSpecifier("Invalid slot")
    return result


def _unescape(text: str, position: int) -> tuple[str, int]:
    if position >= len(text):
        raise BadSyntax("Invalid syntax")
    kind = text[position]
    if kind in _ESCAPES:
        return _ESCAPES[kind], position + 1
    base, length = _NUMERIC.get(kind, (8, 3))
    start = position + (kind in _NUMERIC)
    digits = text[start : start + length]
    try:
        code = int(digits, base)
    except ValueError:
        raise BadSyntax("Invalid syntax") from None
    if len(digits) < length or code == 0:
        raise BadSyntax("Invalid syntax")
    return chr(code), start + length
