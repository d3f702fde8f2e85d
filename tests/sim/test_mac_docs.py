"""docs/macos.md: the tests that it names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_table_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/macos.md").read_text()))
    files = [*(ROOT / "tests/sim").glob("test_*.py"), ROOT / "tests/hosts/test_lab_mac.py"]
    existing = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert named
    assert named <= existing


def test_every_row_states_whether_it_was_seen() -> None:
    lines = (ROOT / "docs/macos.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|") and "test_" in line]
    assert all(line.endswith("| not yet |") or "| macOS " in line for line in rows)
