"""Every file in tests/cases/inventory lists the problems that it must get in its `#!` lines."""

from pathlib import Path

import pytest

from fleetctl.inventory import InvalidFile, load
from tests.conftest import CASES

FILES = sorted((CASES / "inventory").glob("*.yaml"))


def reported(file: Path) -> list[str]:
    try:
        _, warnings = load(file)
    except InvalidFile as error:
        lines = error.details()
    else:
        lines = [warning.line(str(file), "warning: ") for warning in warnings]
    return [line.removeprefix(f"{file}:") for line in lines]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_gets_exactly_the_expected_problems(file: Path) -> None:
    expected = [line[3:] for line in file.read_text().splitlines() if line.startswith("#!")]
    assert reported(file) == expected
