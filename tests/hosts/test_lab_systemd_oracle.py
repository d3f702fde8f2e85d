"""systemd as the oracle of the codecs: what it really gives to a process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fleetctl.codecs import systemd_env_file, systemd_unit
from tests.lab.fixture_types import Shared
from tests.lab.lab import Lab
from tests.lab.systemd_oracle import BATCH, Rendered, environments
from tests.test_codecs import COUNT, accepted, names

pytestmark = pytest.mark.host

FORMS: dict[str, tuple[Callable[[str], str], Callable[[dict[str, str]], Rendered]]] = {
    "EnvironmentFile": (
        systemd_env_file.encode,
        lambda batch: Rendered(
            environment_file="".join(f"{name}={value}\n" for name, value in batch.items())
        ),
    ),
    "Environment": (
        systemd_unit.encode,
        lambda batch: Rendered(
            unit_lines="".join(f'Environment="{name}={value}"\n' for name, value in batch.items())
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_ten_thousand_values_pass_through_systemd_unaltered(
    form: str, shared: Shared, lab: Lab
) -> None:
    encode, render = FORMS[form]
    written = names(accepted(encode))
    encoded = [(name, text) for name, (_, text) in written.items()]
    batches = [dict(encoded[start : start + BATCH]) for start in range(0, COUNT, BATCH)]
    seen: dict[bytes, bytes] = {}
    for environment in environments(lab, shared("bare"), [render(batch) for batch in batches]):
        seen |= environment
    altered = [
        value for name, (value, _) in written.items() if seen.get(name.encode()) != value.encode()
    ]
    assert not altered
    assert len(written) == COUNT


def test_what_systemd_refuses_is_missing(shared: Shared, lab: Lab) -> None:
    text = 'GOOD=1\nBAD NAME=2\nESCAPED="a\\"b"\n'
    (seen,) = environments(lab, shared("bare"), [Rendered(environment_file=text)])
    assert (seen[b"GOOD"], seen[b"ESCAPED"]) == (b"1", b'a"b')
    assert not [name for name in seen if b"NAME" in name]
