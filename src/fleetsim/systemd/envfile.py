"""Environment files as systemd reads them: neither shell nor unit syntax, but a third one."""

_NEWLINES = "\n\r"
_BLANKS = " \t\n\r"
_ESCAPED_IN_QUOTES = '"\\`$'


def parse_environment_file(text: str) -> list[tuple[str, str]]:
    """Assignments in order. Names are not judged here."""
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
                    # blanks at the end do not count, unless they were quoted or escaped
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
