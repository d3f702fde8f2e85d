"""Fixtures of the real layer: a lab for the session, fresh and shared nodes, an observer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import testinfra

from tests.hosts.managed import Manage
from tests.hosts.project import LabProject
from tests.lab.fixture_types import Boot, Observe, Shared
from tests.lab.lab import Lab, prepare, session
from tests.lab.node import Node
from tests.lab.wheels import wheel_house

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements-dev.txt"
# A node holds 7 inotify instances, and by default the kernel gives root 128 in all.
SHARED_AT_ONCE = 4


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    prepare()
    with session({ROOT: "/srv/fleetctl", wheel_house(REQUIREMENTS): "/srv/wheels"}) as lab:
        yield lab


@pytest.fixture
def boot(lab: Lab) -> Iterator[Boot]:
    """Boots fresh nodes, which are thrown away after the test."""
    nodes: list[Node] = []

    def boot(kinds: str, jump: Node | None = None) -> Node:
        nodes.append(lab.start(kinds, jump=jump))
        nodes[-1].wait()
        return nodes[-1]

    yield boot
    for node in nodes:
        node.remove()


@pytest.fixture
def node(boot: Boot) -> Node:
    """A fresh node with Ollama as its installer leaves it."""
    return boot("installer")


@pytest.fixture(scope="session")
def shared(lab: Lab) -> Shared:
    """Nodes for tests that leave no trace; ask anew in each test, the longest unused one goes."""
    nodes: dict[str, Node] = {}

    def shared(kinds: str) -> Node:
        node = nodes.pop(kinds, None) or lab.boot(kinds)
        nodes[kinds] = node
        if len(nodes) > SHARED_AT_ONCE:
            nodes.pop(next(iter(nodes))).remove()
        return node

    return shared


@pytest.fixture(scope="session")
def observe(lab: Lab) -> Observe:
    """Looks at a node as root over a connection of its own, with none of our code."""

    def observe(node: Node) -> testinfra.host.Host:
        return testinfra.get_host(
            f"ssh://root@{node.name}?controlpersist=0",
            ssh_config=str(lab.ssh_config),
            ssh_extra_args=f"-S {lab.observer(node)}",
        )

    return observe


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> LabProject:
    return LabProject(lab, tmp_path)


@pytest.fixture
def manage(lab: Lab, boot: Boot, observe: Observe, tmp_path: Path) -> Manage:
    return Manage(lab, boot, observe, tmp_path)
