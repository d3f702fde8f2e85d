"""Values that have broken somebody's quoting, and an endless supply of more."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import strategies as st

NASTY = [
    "", " ", "a b", "  both ends  ", "tab\there", "line\nbreak", "\n", "a\r\nb", "\r", "a" * 5000,
    "ends in \\", "\\", "\\\\", "\\n", "\\'", '\\"', "\\$", "'", '"', "'\"'", "it's", 'say "hi"',
    "'\\''", "`id`", "$(id)", "$HOME", "${HOME}", "${HOME:-x}", "${", "$", "$$", "$'\\n'", "%h",
    "%%", "%", "!history", "#comment", "a #b", "a=b", "=", "---", "--- ", "\n---\n", ": ",
    "key: value", "- item", "[list]", "{map}", "&anchor", "*alias", "|", ">", "@at", "~", "null",
    "NO", "yes", "true", "22:22", "1.10", "017", ".inf", "2026-01-01", "<<", "<b>&amp;</b>", "]]>",
    "é", "ß", "日本", "😀", "\u0085", "\u00a0", "\u2028", "\ufeff", "\u202e", "\x1b[31m", "\x07",
    "\x7f", "\x01", "\x80", "\ufffe", "\uffff", "\U0001ffff", "\ufdd0", "\0", "\ud800",
]  # fmt: skip

ALPHABET = [
    *" \t\n\r\\\"'`$%!#&*()[]{}<>|;:,.=~^?-+@/0aZé\u0085\u2028\ufeff\x01\x1b\x7f日😀",
    *("${", "$(", "\\n", "\\\\", "---", "%h", "'\\''", "]]>", "<!--", "&amp;"),
]

texts = st.text(max_size=40) | st.lists(st.sampled_from(ALPHABET), max_size=20).map("".join)


def supply(seed: int = 4711) -> Iterator[str]:
    """The nasty ones, then random ones; the same every time."""
    yield from NASTY
    chance = random.Random(seed)
    while True:
        yield "".join(chance.choices(ALPHABET, k=chance.randrange(24)))
        tops = chance.choices((0x80, 0x800, 0x110000), k=chance.randrange(12))
        yield "".join(chr(chance.randrange(1, top)) for top in tops)
