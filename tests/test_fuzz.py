"""A short run of the fuzzer; `make fuzz` is the long one."""

from __future__ import annotations

import random

from tests import fuzz


def test_no_mutated_input_gets_a_traceback() -> None:
    seed = random.SystemRandom().randrange(2**32)
    with fuzz.playground() as folder:
        for number in range(2000):
            try:
                fuzz.one_round(seed, number, folder)
            except Exception as error:
                error.add_note(f"again: python tests/fuzz.py --seed {seed} --only {number}")
                raise
