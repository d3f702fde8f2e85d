"""Invalid and hostile files: one clear message each, within limits of time and memory."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl.errors import FleetError
from fleetctl.inventory import load
from fleetctl.inventory.document import MAX_ALIASED, parse, read
from tests.conftest import FleetctlIn, clean_environment

BOMB = "".join(
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
    ]
)

BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "has no 'nodes'"),
    "truncated": (b"nodes:\n  a: {ssh: {host: x", "2:20: the file is not valid YAML"),
    "an open quote": (b'nodes:\n  a: {ssh: {host: "x}}\n', "the file is not valid YAML"),
    "binary": (bytes(range(256)) * 64, "the file is not UTF-8 text"),
    "NUL": (b"nodes: {a: {}}\n# \0\n", "2:3: the file contains the control character U+0000"),
    "an escape code": (b"nodes: {a: {}}\n# \x1b[2J\n", "the control character U+001B"),
    "latin-1": ("project: {name: Bär}".encode("latin-1"), "1:18: the file is not UTF-8"),
    "50 MB": (b"nodes: {a: {}}\n" + b"# fill\n" * 7_500_000, "the file is larger than 16 MiB"),
    "a byte order mark": (b"\xef\xbb\xbfnodes: {}\n", "starts with a byte order mark"),
    "UTF-16": ("nodes: {}".encode("utf-16"), "starts with a byte order mark"),
    "CRLF": (b"nodes:\r\n  a: {}\r\n", "1:7: the file has Windows line endings"),
    "tabs": (b"nodes:\n\ta: {}\n", "2:1: the file is indented with a tab; use spaces"),
    "tabs after spaces": (b"nodes:\n  a:\n  \tssh: none\n", "indented with a tab"),
    "a python object": (b"nodes: !!python/object:os.system {}\n", "tag:yaml.org,2002:python"),
    "an anchors bomb": (BOMB.encode(), "expands to too many values by its aliases"),
    "an alias of itself": (b"nodes: &a {b: *a}\n", "alias *a without an anchor"),
    "an unknown alias": (b"nodes: *a\n", "alias *a without an anchor"),
    "depth 2000": (b"nodes: " + b"[" * 2000 + b"]" * 2000, "nested deeper than 32 levels"),
    "depth 200000": (b"nodes: " + b"[" * 200_000, "nested deeper than 32 levels"),
    "block depth": (
        b"".join(b" " * n + b"a:\n" for n in range(2000)),
        "nested deeper than 32 levels",
    ),
    "an unhashable key": (b"nodes: {[1, 2]: {}}\n", "1:9: the file has a key that is not text"),
    "a mapping for a key": (b"? {a: b}\n: c\n", "the file has a key that is not text"),
    "two documents": (b"nodes: {a: {}}\n---\nnodes: {}\n", "2:1: the file contains a second doc"),
    "a list": (b"- nodes\n", "is a list; it must be a mapping"),
    "a word": (b"nodes\n", "is 'nodes'; it must be a mapping"),
    "a duplicate key": (b"nodes: {a: {}}\nnodes: {}\n", "2:1: the key 'nodes' appears twice"),
    "a merge key": (b"nodes:\n  a: {}\n  b:\n    <<: {}\n", "4:5: nodes.b: a merge key"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_one_clear_message(name: str, fleetctl: FleetctlIn) -> None:
    data, message = BAD[name]
    (fleetctl.folder / "fleet.yaml").write_bytes(data)
    outcome = fleetctl("validate").exits(2)
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.startswith("fleet.yaml:")
    assert len(outcome.err) < 2000


@pytest.mark.parametrize("name", ["50 MB", "an anchors bomb", "depth 200000", "binary"])
def test_a_hostile_file_costs_little(name: str, tmp_path: Path) -> None:
    """The kernel enforces 2 seconds of CPU and 200 MiB."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        resource.setrlimit(resource.RLIMIT_DATA, (200 * 2**20, 200 * 2**20))

    (tmp_path / "fleet.yaml").write_bytes(BAD[name][0])
    done = subprocess.run(
        [sys.executable, "-m", "fleetctl", "validate"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        preexec_fn=bounds,
    )
    assert done.returncode == 2, done.stderr


def test_only_a_regular_file_is_an_inventory(fleetctl: FleetctlIn) -> None:
    os.mkfifo(fleetctl.folder / "pipe")
    for name, why in [
        (".", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("missing.yaml", "No such file"),
        ("a" * 300, "File name too long"),
    ]:
        assert why in fleetctl("validate", "-i", name).exits(2).err


def test_an_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a replaced `open`, since root may read everything."""

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    (tmp_path / "fleet.yaml").write_text("nodes: {a: {}}")
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(FleetError, match="Permission denied"):
        load(tmp_path / "fleet.yaml")


def test_aliases_within_the_budget_are_fine_and_beyond_it_are_not() -> None:
    row = f"a: &a [{', '.join(['x'] * 999)}]\n"
    within = MAX_ALIASED // 1000
    assert read((row + f"b: [{', '.join(['*a'] * within)}]").encode(), "fleet.yaml").value
    with pytest.raises(FleetError, match="1 error"):
        read((row + f"b: [{', '.join(['*a'] * (within + 1))}]").encode(), "fleet.yaml")


def test_positions_point_at_keys_and_list_items() -> None:
    positions = parse(b"a:\n  b: [x, {c: 1}]\n", with_positions=True).positions
    assert {path: (at.line, at.column) for path, at in positions.items()} == {
        (): (1, 1),
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "b", 1, "c"): (2, 11),
    }
