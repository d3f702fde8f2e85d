"""Markdown with YAML front matter: agent files.

The block must open at the first byte of the file, or Claude Code silently ignores the whole file.
Every value is on the line of its key, so no `---` inside a value can close the block.
"""

import re

from fleetctl.codecs import Unrepresentable, refuse_nul_and_surrogates, yaml_flow

encode = yaml_flow.encode

_BLOCK = re.compile(r"\A---\n(.*?^)---\n", re.DOTALL | re.MULTILINE)


def is_body(before: str) -> bool:
    """Whether text that follows `before` is below the closing line of the block."""
    return _BLOCK.match(before) is not None


def encode_body(text: object) -> str:
    """Markdown below the block, which needs no quoting."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not text")
    refuse_nul_and_surrogates(text, "Markdown")
    if "\r" in text:
        raise Unrepresentable(text, "Markdown", "readers turn its carriage return into a line feed")
    return text


def decode(text: str) -> tuple[dict[str, object], str]:
    """The values of the block, and the body."""
    block = _BLOCK.match(text)
    if block is None:
        raise ValueError(
            "it does not start with front matter, which is a line `---`, values, and a line `---`"
        )
    values = yaml_flow.decode(block[1])
    if not isinstance(values, dict):
        raise ValueError("the front matter is not a mapping")
    return values, text[block.end() :]
