"""The lock of a node, taken by many shells at once that are killed while they hold or claim it."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from fleetctl import shell
from tests.conftest import needs_shell

LIBRARY = Path(shell.__file__).with_name("transaction.sh")
LOAD = '. "${1%/*}/lock.sh"; . "$1"; '
ROUNDS = 40
SHELLS = 4
GENERATIONS = 10

# Each shell begins and ends its stay with a line in one log. One in so many stays ends in death,
# and so does one in so many programs that are started on the way to the lock.
WORKER = (
    LOAD
    + r"""
state=$2 rounds=$3 die_inside=$4 die_outside=$5 owner=$6
inside=no
boot_id() { echo now; }
for program in ln rm readlink; do
  eval "$program() { tick; command $program \"\$@\"; }"
done
tick() {
  [ $inside = no ] || return 0
  { read -r ticks <"$state/ticks.$$"; } 2>/dev/null || ticks=0
  echo $((ticks + 1)) >"$state/ticks.$$"
  [ $((ticks + 1)) != "$die_outside" ] || { kill -9 $$; exit; }
}
while [ "$rounds" -gt 0 ]; do
  rounds=$((rounds - 1)) nonce=$$-$rounds
  take_lock || continue
  inside=yes
  echo "in $nonce" >>"$state/history"
  [ "$rounds" -gt "$die_inside" ] || { echo "out $nonce died" >>"$state/history"; kill -9 $$; }
  echo "out $nonce" >>"$state/history"
  release
  inside=no
done
"""
)


def work(folder: Path, random_: random.Random) -> subprocess.Popen[bytes]:
    dies = random_.choice(["inside", "outside", "never"])
    inside = random_.randrange(1, ROUNDS) if dies == "inside" else -1
    outside = random_.randrange(1, 120) if dies == "outside" else -1
    arguments = [str(LIBRARY), str(folder), str(ROUNDS), str(inside), str(outside), "ada@desk"]
    return subprocess.Popen(["dash", "-c", WORKER, "worker", *arguments])


def stays(history: Iterable[str]) -> tuple[int, int]:
    """How many began, and how many died; never one inside of another."""
    inside = None
    begun = died = 0
    for line in history:
        what, nonce, *how = line.split()
        if what == "in":
            assert inside is None, f"{nonce} came in while {inside} was there"
            inside, begun = nonce, begun + 1
        else:
            assert inside == nonce
            inside, died = None, died + len(how)
    return begun, died


@pytest.mark.slow
def test_never_two_hold_the_lock_however_many_are_killed(tmp_path: Path) -> None:
    needs_shell("dash")
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    random_ = random.Random(seed)
    shells = [work(tmp_path, random_) for _ in range(SHELLS)]
    killed = 0
    for _ in range((GENERATIONS - 1) * SHELLS):
        first = shells.pop(0)
        killed += first.wait() != 0
        shells.append(work(tmp_path, random_))
    for each in shells:
        killed += each.wait() != 0
    history = (tmp_path / "history").read_text().splitlines()
    begun, died = stays(history)
    tries = GENERATIONS * SHELLS * ROUNDS
    print(f"{tries} tries at most, {begun} stays, {killed} shells killed, {died} of them inside")
    assert begun > 100
    assert died > 0
    assert killed > died


def test_a_dead_holder_and_a_dead_claimer_are_followed(tmp_path: Path) -> None:
    """Links as they would have left them, of processes that are no more."""
    needs_shell("dash")
    gone = "no-such-boot:1:1:{}:somebody@else"
    (tmp_path / "lock").symlink_to(gone.format("first"))
    (tmp_path / "lock.after-first").symlink_to(gone.format("second"))
    (tmp_path / "lock.after-second").symlink_to(gone.format("third"))
    script = LOAD + 'state=$2 nonce=mine owner=ada@desk; take_lock && readlink "$state/lock"'
    done = subprocess.run(
        ["dash", "-c", script, "taker", str(LIBRARY), str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout.strip().endswith(":mine:ada@desk")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_the_lock_of_a_living_holder_is_respected_and_its_owner_named(tmp_path: Path) -> None:
    needs_shell("dash")
    take = '. "${1%/*}/lock.sh"; . "$1"; state=$2 nonce=$3 owner=$4; take_lock; echo "$? $holder"; '
    holder = subprocess.Popen(
        [
            "dash",
            "-c",
            f"{take} read -r _",
            "holder",
            str(LIBRARY),
            str(tmp_path),
            "one",
            "bob@laptop",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout
    assert holder.stdout.readline() == "0 \n"
    second = ["dash", "-c", take, "second", str(LIBRARY), str(tmp_path), "two", "ada@desk"]
    said = subprocess.run(second, capture_output=True, text=True).stdout
    holder.kill()
    holder.communicate()
    assert said.startswith("1 ")
    assert said.strip().endswith(":one:bob@laptop")
    assert subprocess.run(second, capture_output=True, text=True).stdout.startswith("0 ")
