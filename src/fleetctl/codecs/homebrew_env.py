"""Homebrew's `services/NAME.env`: lines of `NAME=value`, trimmed and never unquoted."""

import re

from fleetctl.codecs import Unrepresentable, refuse_nul_and_surrogates

_FORM = "an environment file of Homebrew"
_ASSIGNMENT = re.compile(r"^(\w+)=([^\n]*)$", re.ASCII | re.MULTILINE)


def encode(value: str) -> str:
    refuse_nul_and_surrogates(value, _FORM)
    if "\n" in value or "\r" in value:
        raise Unrepresentable(value, _FORM, "it contains a line break")
    if value != value.strip():
        raise Unrepresentable(value, _FORM, "Homebrew trims blanks at its ends")
    return value


def decode(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in _ASSIGNMENT.findall(text)}
