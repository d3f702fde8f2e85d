"""The server's log on stderr in the text format of Go's slog, the access log on stdout, and the
record of refusals."""

import os
import sys
import time


def info(source: str, message: str, **fields: object) -> None:
    _write("INFO", source, message, fields)


def warn(source: str, message: str, **fields: object) -> None:
    _write("WARN", source, message, fields)


def access(status: int, seconds: float, client: str, method: str, path: str) -> None:
    stamp = time.strftime("%Y/%m/%d - %H:%M:%S")
    took = f"{seconds * 1000:.6f}ms"
    sys.stdout.write(
        f'[GIN] {stamp} | {status} | {took:>13} | {client:>15} | {method:<8} "{path}"\n'
    )
    sys.stdout.flush()


def refuse(folder: str, what: str) -> None:
    """Record a use of something that is not simulated in the machine's folder."""
    with open(os.path.join(folder, "refused.log"), "a", encoding="utf-8") as file:
        file.write(what + "\n")


def timestamp(now: float, digits: int) -> str:
    """The time in RFC 3339 format, local time, as Go prints it."""
    local = time.localtime(now)
    fraction = int((now % 1) * 10**digits)
    seconds, zone = time.strftime("%Y-%m-%dT%H:%M:%S", local), time.strftime("%z", local)
    zone = "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
    return f"{seconds}.{fraction:0{digits}d}{zone}"


def go_map(values: dict[str, str]) -> str:
    return "map[" + " ".join(f"{key}:{value}" for key, value in sorted(values.items())) + "]"


def _write(level: str, source: str, message: str, fields: dict[str, object]) -> None:
    words = [f"time={timestamp(time.time(), 3)}", f"level={level}", f"source={source}"]
    words += [f"{key}={_quoted(str(value))}" for key, value in {"msg": message, **fields}.items()]
    sys.stderr.write(" ".join(words) + "\n")
    sys.stderr.flush()


def _quoted(text: str) -> str:
    if text and text.isprintable() and not any(character in text for character in ' "='):
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(character)
    return named.get(character) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")
