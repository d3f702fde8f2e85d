"""Command lines of the strict tools: the options they know, and refusal of all others."""

from collections.abc import Mapping, Sequence

from fleetsim.tools.calls import Refused


def parse(
    arguments: Sequence[str], flags: Mapping[str, str], values: Mapping[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Words, and options by name; `flags` and `values` map each spelling to that name."""
    words: list[str] = []
    found: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--":
            words += rest
            break
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in flags:
            found.setdefault(flags[argument], [])
        elif argument in values:
            if not rest:
                raise Refused(f"option {argument} without its value")
            found.setdefault(values[argument], []).append(rest.pop(0))
        elif equals and name in values and name.startswith("--"):
            found.setdefault(values[name], []).append(value)
        elif argument[:2] in values and not argument.startswith("--"):
            found.setdefault(values[argument[:2]], []).append(argument[2:])
        else:
            raise Refused(f"option {argument}")
    return words, found
