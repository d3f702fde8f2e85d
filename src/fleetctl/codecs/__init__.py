"""One module a file format. Each has

- `encode(value)`: one value as it stands in a file of that format, quotes included, and
- `decode(text)`: all values of such a file, for reading back what was written.

A value that a format cannot carry unaltered is refused with `Unrepresentable`.
"""

from __future__ import annotations

from fleetctl.errors import Exit, FleetError


class Unrepresentable(FleetError):
    """A value that would not survive the format."""

    def __init__(self, value: str, form: str, reason: str) -> None:
        shown = ascii(value if len(value) <= 60 else value[:57] + "...")
        super().__init__(
            f"{shown} cannot be written to {form}: {reason}",
            hint="take the character out of the value",
            exit_code=Exit.USAGE,
        )


def refuse_nul_and_surrogates(value: str, form: str) -> None:
    """No environment, shell or text file can carry these."""
    if "\0" in value:
        raise Unrepresentable(value, form, "it holds a NUL byte")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Unrepresentable(value, form, "it holds half of a surrogate pair")


def refuse_what_systemd_refuses(value: str, form: str) -> None:
    """systemd rejects a whole file for one of Unicode's noncharacters."""
    refuse_nul_and_surrogates(value, form)
    for char in value:
        if ord(char) & 0xFFFE == 0xFFFE or "\ufdd0" <= char <= "\ufdef":
            raise Unrepresentable(value, form, f"U+{ord(char):04X} is no character")
