"""A roll-out over several simulated machines: how many may fail before the rest is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fleet_fixtures import Project, simulated_project
from tests.sim.remote import answering, until_answering

NODES = 3
QUICK = ("--yes", "--health-timeout", "0.3", "--settle", "0.1", "--serial", "1")


@pytest.fixture
def project() -> Iterator[Project]:
    with simulated_project() as project:
        for number in range(NODES):
            machine = project.add(f"box-{number}")
            until_answering(machine)
            machine.behave(crash_on_start=True, when={"OLLAMA_KEEP_ALIVE": "1h0m0s"})
            project.set(machine.name, keep_alive="1h")
        yield project


@pytest.mark.slow
def test_the_rest_is_left_alone_when_more_have_failed_than_may(project: Project) -> None:
    """At 0, 1, N-1 and N; the node that is one too many is the last that was begun."""
    for allowed, failed in ((0, 1), (1, 2), (NODES - 1, NODES), (NODES, NODES)):
        outcome = project.fleetctl("apply", *QUICK, "--json", "--max-fail", str(allowed)).exits(5)
        ends = outcome.json["outcomes"].values()
        states = Counter(end["state"] for end in ends)
        print(f"--max-fail {allowed}: {dict(states)}")
        assert states["rolled back"] == failed
        assert states["skipped"] == NODES - failed
        whys = {end["message"] for end in ends if end["state"] == "skipped"}
        have = "1 node has" if failed == 1 else f"{failed} nodes have"
        assert whys <= {f"{have} failed, and --max-fail allows {allowed}"}
        assert all(answering(machine) for machine in project.fleet.machines.values())
