"""One module per file format. Each has

- `encode(value)`: one value as it is written in a file of that format, quotes included, and
- `decode(text)`: all values of such a file, to check what was written.

`encode` raises `Unrepresentable` for a value that the format would alter.
"""

from fleetctl.errors import Exit, FleetError


class Unrepresentable(FleetError):
    """A value that the format would alter."""

    def __init__(self, value: str, form: str, reason: str) -> None:
        shown = ascii(value if len(value) <= 60 else value[:57] + "...")
        super().__init__(
            f"{shown} cannot be written to {form}: {reason}",
            hint="remove the character from the value",
            exit_code=Exit.USAGE,
        )


def refuse_nul_and_surrogates(value: str, form: str) -> None:
    """No environment, shell or text file can carry these."""
    if "\0" in value:
        raise Unrepresentable(value, form, "it contains a NUL byte")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Unrepresentable(value, form, "it contains half of a surrogate pair")


def refuse_what_systemd_refuses(value: str, form: str) -> None:
    """systemd rejects a whole file for one of Unicode's noncharacters."""
    refuse_nul_and_surrogates(value, form)
    for char in value:
        if ord(char) & 0xFFFE == 0xFFFE or "\ufdd0" <= char <= "\ufdef":
            raise Unrepresentable(value, form, f"U+{ord(char):04X} is not a character")
