"""systemd's two syntaxes: words of a unit setting (quotes, C escapes, specifiers), and environment
files, which follow neither the unit nor the shell syntax."""

from collections.abc import Mapping

_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "s": " ",
}  # fmt: skip
_NUMERIC = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}
_NEWLINES = "\n\r"
_BLANKS = " \t\n\r"
_ESCAPED_IN_QUOTES = '"\\`$'


class BadSyntax(ValueError):
    """systemd ignores the whole assignment."""


class UnknownSpecifier(ValueError):
    """systemd ignores the word."""


def split(text: str) -> list[str]:
    """Split at blanks. Quotes may start anywhere, and escapes are processed inside both kinds."""
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
    """Expand specifiers such as `%h`."""
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


def parse_environment_file(text: str) -> list[tuple[str, str]]:
    """The assignments in an environment file, in order. Names are not validated here."""
    found: list[tuple[str, str]] = []
    state, key, value, kept = "before key", "", "", 0
    for character in text:
        newline = character in _NEWLINES
        match state:
            case "before key":
                if character in "#;":
                    state = "comment"
                elif character not in _BLANKS:
                    state, key = "key", character
            case "key":
                if newline:
                    state = "before key"
                elif character == "=":
                    state, value, kept = "before value", "", 0
                else:
                    key += character
            case "before value" | "value":
                if newline:
                    # trailing blanks are dropped, unless they were quoted or escaped
                    found.append((key.rstrip(_BLANKS), _trimmed(value, kept)))
                    state = "before key"
                elif character in "\"'" and state == "before value":
                    state = "double" if character == '"' else "single"
                elif character == "\\":
                    state = "value escape"
                elif state == "value" or character not in _BLANKS:
                    state, value = "value", value + character
            case "value escape":
                state = "value"
                if not newline:
                    value += character
                    kept = len(value)
            case "single":
                if character == "'":
                    state, kept = "before value", len(value)
                else:
                    value += character
            case "double":
                if character == '"':
                    state, kept = "before value", len(value)
                elif character == "\\":
                    state = "double escape"
                else:
                    value += character
            case "double escape":
                state = "double"
                if character in _ESCAPED_IN_QUOTES:
                    value += character
                elif character != "\n":
                    value += "\\" + character
            case "comment":
                state = "comment escape" if character == "\\" else state
                state = "before key" if newline else state
            case "comment escape":
                state = "comment"
    if state not in ("before key", "key", "comment", "comment escape"):
        found.append((key.rstrip(_BLANKS), _trimmed(value, kept)))
    return found


def _trimmed(value: str, kept: int) -> str:
    return value[:kept] + value[kept:].rstrip(_BLANKS)
