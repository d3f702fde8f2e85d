"""Mutated inventories and command lines: whatever comes in, an answer comes out and no traceback.

`make fuzz` runs many rounds, the tests a few. A round is made from the seed and its own number
alone, so that `--seed N --only ROUND` shows it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fleetctl.cli import cli, guard
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import load

ROOT = Path(__file__).parents[1]
SEEDS = [
    file.read_bytes()
    for folder in ("inventory", "tests/cases/inventory", "tests/cases/subagent-fleet")
    for file in sorted((ROOT / folder).glob("*.yaml"))
]
NOBODY = """
groups: {minis: {}}
nodes:
  mac-1: {ssh: {host: 127.0.0.1, port: 1}, groups: [minis]}
  box: {ssh: {host: 127.0.0.1, port: 2}, tags: [heavy]}
"""
"""Commands that connect must find nobody: these ports of loopback refuse at once."""

PIECES = [
    b"\t", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1b[2J", b": ", b"- ", b"[", b"{", b"]",
    b"}", b"&a", b"*a", b"<<: *a", b"!!python/object:os.system", b"---\n", b"? ", b"|\n", b">\n",
    b"'", b'"', b"null", b"~", b"NO", b"1e309", b"0x1F", b"-1", b"99999999999999999999", b".inf",
    b"22:22", b"1.10", b"../x", b"controller", b"ollama", b"ssh", b"none", b"nodes", b"models",
    b"node: [1]", b"host: {}", "é".encode(), "mіni".encode(), "\u202e".encode(), "😀".encode(),
    b"a" * 300, b"{{7*7}}", b"$(id)",
]  # fmt: skip
WORDS = [
    *(name for name in cli.commands if name != "demo"),
    "-i", "--config", "--limit", "--json", "--graph", "--ansible", "--strict",
    "--debug", "--help", "-h", "--version", "--output", "--force", "fleet.yaml", "bad.yaml", ".",
    "new.yaml", "nodes", "bash", "zsh", "mac*", "!box", "@minis", "tag:heavy", "controller", "[",
    "[!", "", "-", "--", "--=", "-\x1b[2J", "\udcff", "a" * 5000, "{{7*7}}", "--limit=",
    "--json=1",
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at:at] = chance.choice(PIECES)
            case 1:
                del data[at : at + chance.randrange(1, 40)]
            case 2:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                data[at:at] = data[at - chance.randrange(60) : at]
            case 4:
                lines = bytes(data).split(b"\n")
                chance.shuffle(lines)
                data[:] = b"\n".join(lines)
            case 5:
                del data[at:]
    return bytes(data)


def inventory_round(chance: random.Random, folder: Path) -> None:
    file = folder / "fuzzed.yaml"
    file.write_bytes(mutated(chance))
    try:
        load(file)
    except FleetError as error:
        if error.exit_code != Exit.USAGE:
            raise AssertionError(f"exit {error.exit_code} for a bad inventory") from error


def command_round(chance: random.Random) -> None:
    words = chance.choices(WORDS, k=chance.randrange(6))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = guard.run(cli, words)
    expected = (Exit.OK, Exit.USAGE, Exit.FAILED, Exit.UNREACHABLE)
    if code not in expected or "Traceback" in err.getvalue():
        raise AssertionError(f"fleetctl {words!r}: exit {code}: {err.getvalue()[:500]}")


@contextlib.contextmanager
def playground() -> Iterator[Path]:
    """A folder with a good and a bad inventory, as the working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fleet.yaml").write_text(NOBODY)
        (folder / "bad.yaml").write_text("nodes: {a: {b: c}}")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def one_round(seed: int, number: int, folder: Path) -> None:
    chance = random.Random(f"{seed}/{number}")
    if number % 4 == 3:
        command_round(chance)
    else:
        inventory_round(chance, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", type=int, help="run just this round")
    options = parser.parse_args()
    rounds = [options.only] if options.only is not None else range(options.rounds)
    failed, slowest = 0, 0.0
    started = time.perf_counter()
    with playground() as folder:
        for number in rounds:
            began = time.perf_counter()
            try:
                one_round(options.seed, number, folder)
            except Exception as error:
                failed += 1
                print(f"seed {options.seed} round {number}: {type(error).__name__}: {error}")
            slowest = max(slowest, time.perf_counter() - began)
    seconds = time.perf_counter() - started
    print(f"seed {options.seed}: {len(rounds)} rounds, {failed} failed, {seconds:.0f} s,", end=" ")
    print(f"slowest {slowest:.2f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
