"""Taking records out of what a node has printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


class Garbled(Exception):
    """The answer is not what the script prints: cut, or not from our script at all."""


@dataclass(frozen=True, slots=True)
class Record:
    status: int
    output: bytes
    sections: Mapping[str, bytes] = field(default_factory=dict)
    """What came after each `section NAME`."""

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    def section(self, name: str) -> str:
        return self.sections.get(name, b"").decode(errors="replace")


def parse(output: bytes, nonce: str) -> dict[str, Record]:
    chunks = list(_chunks(output, nonce))
    if not chunks or chunks.pop()[0] != ".":
        raise Garbled("the answer breaks off")
    return dict(_records(iter(chunks)))


def _chunks(stream: bytes, nonce: str) -> Iterator[tuple[str, str, bytes]]:
    """The mark, the word after it, and what follows until the next mark."""
    _, *chunks = stream.split(f"\n@@{nonce} ".encode())
    for chunk in chunks:
        head, _, body = chunk.partition(b"\n")
        mark, _, word = head.decode(errors="replace").partition(" ")
        yield mark, word, body


def _records(chunks: Iterator[tuple[str, str, bytes]]) -> Iterator[tuple[str, Record]]:
    for mark, key, body in chunks:
        sections: dict[str, bytes] = {}
        tail, word, rest = next(chunks, ("", "", b""))
        while tail == "+":
            sections[word] = rest
            tail, word, rest = next(chunks, ("", "", b""))
        name, _, status = word.rpartition(" ")
        if (mark, tail, name) != (">", "<", key) or not status.isdecimal():
            raise Garbled("the answer is out of order")
        yield key, Record(int(status), body, sections)
