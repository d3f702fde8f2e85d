"""Runs that are killed, cut off or lose their node at every step: it serves, and the next mends it.

The steps are those that an undisturbed run says, so that one which is added later is among them.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.conftest import finished
from tests.disturbed import Disturbance
from tests.hosts.managed import QUICK, Manage, Managed, Seen

pytestmark = [pytest.mark.host, pytest.mark.ollama, pytest.mark.slow]

SCOPES = ["user", "installer"]
EVERY_STEP = {
    "locked", "compare", "journal", "stage", "replace 0", "replace 1", "verify", "reload",
    "restart", "commit",
}  # fmt: skip
RANDOM_MOMENTS = 50

Disturb = Callable[[Managed, int], int | None]
"""Disturbs a run at the n-th moment; its exit code, where it has one."""


class Trial:
    """A node that goes from A to B and from B to A, and what each looks like undisturbed."""

    def __init__(self, managed: Managed) -> None:
        self.managed = managed
        self.wanted: dict[str, Seen] = {}
        for letter in "ABA":
            managed.want(letter)
            managed.apply().exits(0)
            self.wanted[letter] = managed.seen()
        self.now = "A"

    def go(self, disturb: Callable[[], int | None]) -> int | None:
        """One disturbed run, what it left, and the next run, which is not disturbed."""
        old, self.now = self.now, "B" if self.now == "A" else "A"
        self.managed.want(self.now)
        code = disturb()
        self.managed.rests()
        self.managed.serves()
        self._is_old_or_new(old)
        outcome = self.managed.apply().exits(0)
        seen = self.managed.seen()
        assert seen == self.wanted[self.now], outcome.err
        assert seen.left == ""
        return code

    def _is_old_or_new(self, old: str) -> None:
        seen = self.managed.seen()
        for path, text in seen.files.items():
            assert text in (self.wanted[old].files[path], self.wanted[self.now].files[path]), path
        given = {self.wanted[letter].environ for letter in (old, self.now)}
        assert seen.environ in given


def records(managed: Managed, *letters: str) -> list[str]:
    """All that a run says that takes every step."""
    heard = managed.project.folder / "heard"
    for letter in letters:
        heard.unlink(missing_ok=True)
        managed.want(letter)
        managed.disturbed(Disturbance(heard=str(heard)), "--yes").exits(0)
    return heard.read_text().splitlines()


def each(trials: Iterable[Trial], moments: int, disturb: Disturb) -> Counter[int | None]:
    """Every moment once, on whichever node is free."""
    free = list(trials)
    todo = list(range(1, moments + 1))

    def work(trial: Trial) -> Counter[int | None]:
        codes = Counter[int | None]()
        while todo:
            moment = todo.pop()
            codes[trial.go(partial(disturb, trial.managed, moment))] += 1
        return codes

    with ThreadPoolExecutor() as pool:
        codes = sum(pool.map(work, free), Counter[int | None]())
    assert codes.total() == moments
    return codes


def two(manage: Manage, kinds: str) -> list[Trial]:
    nodes = [manage(kinds) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(Trial, nodes))


def steps(said: list[str]) -> list[str]:
    return [line.removeprefix("step ") for line in said if line.startswith("step ")]


@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_60_the_controller_is_killed_after_every_record(kinds: str, manage: Manage) -> None:
    trials = two(manage, kinds)
    said = records(trials[0].managed, "B", "A")
    assert set(steps(said)) == EVERY_STEP

    def kill(managed: Managed, moment: int) -> int:
        return managed.disturbed(Disturbance(at=moment, what="SIGKILL")).code

    codes = each(trials, len(said), kill)
    print(f"{kinds}: killed after each of {len(said)} records: {dict(codes)}")
    assert set(codes) == {-signal.SIGKILL}


@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_12_the_connection_is_cut_after_every_record(kinds: str, manage: Manage) -> None:
    trials = two(manage, kinds)
    said = records(trials[0].managed, "B", "A")

    def cut(managed: Managed, moment: int) -> int:
        outcome = managed.disturbed(Disturbance(at=moment, what="cut"))
        assert outcome.code in (0, 5), (said[moment - 1], outcome)
        return outcome.code

    codes = each(trials, len(said), cut)
    print(f"{kinds}: cut after each of {len(said)} records: {dict(codes)}")


@pytest.mark.parametrize("kinds", SCOPES)
def test_the_shell_on_the_node_is_killed_at_every_step(kinds: str, manage: Manage) -> None:
    trials = two(manage, kinds)
    count = len(steps(records(trials[0].managed, "B", "A")))

    def kill(managed: Managed, moment: int) -> int:
        outcome = managed.disturbed(Disturbance(step=moment, does="kill -9 $$"))
        assert outcome.code in (0, 5), outcome
        return outcome.code

    codes = each(trials, count, kill)
    print(f"{kinds}: its shell killed at each of {count} steps: {dict(codes)}")


@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_72_the_power_fails_at_every_step(kinds: str, manage: Manage) -> None:
    trials = two(manage, kinds)
    count = len(steps(records(trials[0].managed, "B", "A")))

    def cut_power(managed: Managed, moment: int) -> None:
        mark = f"/dev/shm/at-{moment}"
        waiting = Disturbance(step=moment, does=f"true >{mark}; sleep 60")
        run = managed.project.start(*waiting.arguments, "apply", *QUICK, "--timeout", "5")
        deadline = time.monotonic() + 60
        while managed.run(f"ls {mark} 2>/dev/null || true") == "":
            assert time.monotonic() < deadline
            assert run.poll() is None, run.communicate()
        managed.node.cut_power()
        run.kill()
        run.communicate()
        managed.node.start()
        managed.node.wait()

    each(trials, count, cut_power)
    print(f"{kinds}: power cut at each of {count} steps")


@pytest.mark.parametrize("kinds", SCOPES)
def test_fault_61_the_controller_is_killed_at_random_moments(kinds: str, manage: Manage) -> None:
    trials = two(manage, kinds)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    random_ = random.Random(seed)
    managed = trials[0].managed
    managed.want("B")
    began = time.monotonic()
    managed.apply().exits(0)
    seconds = time.monotonic() - began
    managed.want("A")
    managed.apply().exits(0)

    def kill(managed: Managed, moment: int) -> int:
        run = managed.project.start("fleetctl", "apply", *QUICK)
        time.sleep(random_.uniform(0, seconds))
        run.kill()
        return finished(run).code

    count = RANDOM_MOMENTS // len(SCOPES)
    codes = each(trials, count, kill)
    print(f"{kinds}: killed at {count} random moments of {seconds:.1f} s: {dict(codes)}")
