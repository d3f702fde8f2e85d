"""Scripts made of questions, and the answers in what a machine prints.

A script is one function and one call, so that a truncated script never starts, and it ends in
`exit`, or the shell would go back to reading its input. Each question is answered in a record:

    @@NONCE > key
    … what the question printed, byte for byte …
    @@NONCE < key STATUS

Without the nonce a record can be neither begun nor ended, so banners, rc files and hostile file
contents cannot forge one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fleetctl.codecs import sh
from fleetctl.model.facts import ABSENT, LARGEST_FILE, Answer, File, Unknown

COMMAND = "/bin/sh -s"
"""The only command that is ever run on a node, so that the login shell never parses our data."""

Os = Literal["linux", "macos"]
SYSTEMS: dict[Os, str] = {"linux": "Linux", "macos": "Darwin"}
"""What uname prints on each."""


def library(module: str, name: str) -> str:
    """The functions of a `.sh` file beside a module; its comments need not be sent."""
    text = Path(module).with_name(name).read_text()
    return re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)


COMMON = library(__file__, "common.sh")
HOST = library(__file__, "host.sh")
LOCK = library(__file__, "lock.sh")
NODE_STATE = library(__file__, "node_state.sh")

quote = sh.encode

# `dd` makes one large piece of many small ones, each of which would be a packet of its own.
_FRAME = """\
fleetctl() {
COMMON
system=$(uname -s)
answer() {
printf '\\n@@NONCE > %s\\n' "$1"
( "question_$2" ) </dev/null
printf '\\n@@NONCE < %s %s\\n' "$1" "$?"
}
section() { printf '\\n@@NONCE + %s\\n' "$1"; }
QUESTIONS
printf '\\n@@NONCE .\\n'
}
{ fleetctl | dd ibs=65536 obs=65536 2>/dev/null; exit 0; }
"""


@dataclass(frozen=True, slots=True)
class Question:
    """Commands whose output is filed under a key; they may fail without harm to the others.

    `section NAME` in them begins a part of the output that is kept apart.
    """

    key: str
    commands: str
    os: Os | None = None
    """Where it is asked; None: everywhere."""
    library: str = ""
    """Shell functions that the commands use; sent once for all questions with the same one."""
    for_root: bool = False
    """Whether root may see more."""


def files_question(key: str, paths: Iterable[str], *, as_root: bool) -> Question:
    """Mode and content of files; `file_in` reads the answer. `~` is the user's home."""
    words = " ".join(in_shell(path) for path in paths)
    reader = "root" if as_root else "user"
    return Question(key, f"read_files {reader} {LARGEST_FILE + 1} {words}", for_root=as_root)


def file_in(answer: Answer, path: str) -> File:
    """A file that was read by `read_files`; `path` as the script named it, expanded."""
    listing = answer.section("modes").splitlines()
    lines = (line for line in listing if line.partition(" -> ")[0].endswith(f" {path}"))
    mode = next(lines, "").partition(" ")[0]
    if f"unreadable {path}" in answer.sections:
        kinds = {"": "its folder may not be searched", "-": "it may not be read"}
        return File(Unknown(kinds.get(mode[:1], "it is not a regular file")), mode)
    if f"file {path}" not in answer.sections:
        return ABSENT
    content = answer.sections[f"file {path}"]
    if len(content) > LARGEST_FILE:
        return File(Unknown(f"it is larger than {LARGEST_FILE // 2**20} MiB"), mode)
    return File(content.decode(errors="surrogateescape"), mode)


def files_in(answer: Answer) -> dict[str, File]:
    """Every file that was read, by path."""
    names = (name.partition(" ") for name in answer.sections)
    paths = dict.fromkeys(path for kind, _, path in names if kind in ("file", "unreadable"))
    return {path: file_in(answer, path) for path in paths}


def has_unreadable(answers: Iterable[Answer]) -> bool:
    return any(name.startswith("unreadable ") for answer in answers for name in answer.sections)


def in_shell(path: str) -> str:
    """A path as a word of a script."""
    return f'"$HOME"{quote(path[1:])}' if path.startswith("~") else quote(path)


def script(questions: Iterable[Question], nonce: str) -> str:
    numbered = list(enumerate(questions))
    libraries = dict.fromkeys(question.library for _, question in numbered)
    texts = (
        *libraries,
        *(f"question_{at}() {{\n{question.commands}\n}}" for at, question in numbered),
        *(_call(question, at) for at, question in numbered),
    )
    frame = _FRAME.replace("NONCE", nonce).replace("COMMON", COMMON)
    return frame.replace("QUESTIONS", "\n".join(texts))


def _call(question: Question, at: int) -> str:
    call = f"answer {quote(question.key)} {at}"
    if question.os is None:
        return call
    return f'[ "$system" != {SYSTEMS[question.os]} ] || {call}'


class Garbled(Exception):
    """The output is not what the script prints: truncated, or not from our script at all."""


def parse(output: bytes, nonce: str) -> dict[str, Answer]:
    chunks = list(_chunks(output, nonce))
    if not chunks or chunks.pop()[0] != ".":
        raise Garbled("the answer is truncated")
    return dict(_answers(iter(chunks)))


def _chunks(stream: bytes, nonce: str) -> Iterator[tuple[str, str, bytes]]:
    """The mark, the word after it, and what follows until the next mark."""
    _, *chunks = stream.split(f"\n@@{nonce} ".encode())
    for chunk in chunks:
        head, _, body = chunk.partition(b"\n")
        mark, _, word = head.decode(errors="replace").partition(" ")
        yield mark, word, body


def _answers(chunks: Iterator[tuple[str, str, bytes]]) -> Iterator[tuple[str, Answer]]:
    for mark, key, body in chunks:
        sections: dict[str, bytes] = {}
        tail, word, rest = next(chunks, ("", "", b""))
        while tail == "+":
            sections[word] = rest
            tail, word, rest = next(chunks, ("", "", b""))
        name, _, status = word.rpartition(" ")
        if (mark, tail, name) != (">", "<", key) or not status.isdecimal():
            raise Garbled("the answer is out of order")
        yield key, Answer(int(status), body, sections)
