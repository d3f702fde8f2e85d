"""Tools whose answer is a fact of the machine, not of the host: shell scripts with a table."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from fleetsim.tools.calls import write_program

_SCRIPT = """\
#!/bin/sh
case "$*" in
{cases}
*) echo "{name}: not simulated: $*" >&2; echo "{name} $*" >>{refused}; exit 125 ;;
esac
"""


def write_constant(folder: Path, name: str, answers: Mapping[str, str], refused: Path) -> None:
    """`answers` maps the arguments, joined by blanks, to what is printed."""
    cases = "\n".join(
        f"{shlex.quote(arguments)}) printf '%s\\n' {shlex.quote(answer)} ;;"
        for arguments, answer in answers.items()
    )
    refused_path = shlex.quote(str(refused))
    write_program(folder / name, _SCRIPT.format(cases=cases, name=name, refused=refused_path))


def write_absent(folder: Path, name: str) -> None:
    """A tool that the machine lacks, and the host may have: it must not be reached by accident."""
    write_program(folder / name, f"#!/bin/sh\necho 'sh: 1: {name}: not found' >&2\nexit 127\n")
