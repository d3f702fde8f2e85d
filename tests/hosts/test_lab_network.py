"""No packet of a node leaves this machine."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.command import LabError, run
from tests.lab.fixture_types import Shared
from tests.lab.lab import Lab, free_slot
from tests.lab.network import Network
from tests.lab.node import Node

pytestmark = pytest.mark.host

# Addresses that are reserved for documentation: nobody has them.
OUTSIDE = ("198.51.100.7", "2001:db8::7")
ALL_PROTOCOLS = 3


@contextmanager
def listening_on(interface: str) -> Iterator[Callable[[], bytes]]:
    """Everything that passes an interface, from now on."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as tap:
        tap.bind((interface, 0))
        tap.settimeout(0.2)

        def heard() -> bytes:
            packets = b""
            try:
                while True:
                    packets += tap.recv(65536)
            except TimeoutError:
                return packets

        yield heard


def interfaces_of_default_routes() -> set[str]:
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "default") or "[]")
    routes += json.loads(run("ip", "-json", "-6", "route", "show", "default") or "[]")
    return {route["dev"] for route in routes}


def call(lab: Lab, node: Node, address: str) -> str:
    """Try to open a TCP connection from the node; returns how that failed."""
    with pytest.raises(LabError) as failure:
        lab.ssh(node, f"timeout 3 bash -c ': </dev/tcp/{address}/80'")
    return str(failure.value)


@pytest.mark.parametrize("address", OUTSIDE)
def test_node_has_a_default_route_and_still_gets_nowhere(
    address: str, shared: Shared, lab: Lab
) -> None:
    node = shared("bare")
    # Forwarding on for our own bridge: the guard must not depend on how the machine is set up.
    Path(f"/proc/sys/net/ipv4/conf/{lab.network.bridge}/forwarding").write_text("1")
    wanted = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    outside = next(iter(interfaces_of_default_routes()), "lo")
    with listening_on(lab.network.bridge) as inside, listening_on(outside) as leaked:
        assert "Network is unreachable" in call(lab, node, address)
        assert wanted in inside()
        assert wanted not in leaked()


def test_addresses_of_the_lab_lead_nowhere_when_the_bridge_is_gone() -> None:
    with free_slot() as slot:
        network = Network(slot)
        network.up()
        try:
            run("ip", "link", "delete", network.bridge)
            for address in (network.ipv4(50), network.ipv6(50)):
                with pytest.raises(LabError, match="No route to host"):
                    run("ip", "route", "get", address)
        finally:
            network.down()


def test_labs_do_not_see_each_other(shared: Shared, lab: Lab) -> None:
    node = shared("bare")
    with free_slot() as slot:
        other = Lab(slot)
        try:
            other.open()
            neighbour = other.boot("bare")
            assert "Network is unreachable" in call(lab, node, neighbour.address)
        finally:
            other.clean()
