"""Markdown with YAML front matter: agent files.

The block must open at the first byte of the file, or Claude Code silently ignores the whole file.
Every value stands on the line of its key, so no `---` inside a value can close the block.
"""

from __future__ import annotations

import re

from fleetctl.codecs import Unrepresentable, refuse_nul_and_surrogates, yaml_flow

encode = yaml_flow.encode

_BLOCK = re.compile(r"\A---\n(.*?^)---\n", re.DOTALL | re.MULTILINE)


def encode_body(text: str) -> str:
    """The Markdown below the block, which is taken as it is."""
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
