"""The proxy does to a connection what its toxics say."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pytest

from tests.lab.command import LabError, run
from tests.lab.fixture_types import Shared
from tests.lab.lab import Lab
from tests.lab.node import Node
from tests.lab.proxy import Proxy, Toxics, Way, proxy_to

pytestmark = pytest.mark.host

MESSAGE = b"0123456789"


@pytest.fixture
def echo() -> Iterator[Proxy]:
    """A proxy in front of a server that sends everything back."""

    def serve() -> None:
        with suppress(OSError):  # the server was closed
            while True:
                connection, _ = server.accept()
                with connection, suppress(ConnectionError):
                    while data := connection.recv(65536):
                        connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        with proxy_to(*server.getsockname()) as proxy:
            yield proxy
        server.shutdown(socket.SHUT_RDWR)


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=0.5)


def receive(client: socket.socket) -> list[bytes]:
    """What arrives, piece by piece, until all of the message is there."""
    received = [client.recv(100)]
    while sum(map(len, received)) < len(MESSAGE):
        received.append(client.recv(100))
    return received


def test_without_toxics_everything_passes_both_ways(echo: Proxy) -> None:
    with connect(echo) as client:
        client.sendall(MESSAGE)
        assert b"".join(receive(client)) == MESSAGE
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def test_delay_counts_for_each_way(echo: Proxy) -> None:
    echo.toxics = Toxics(delay=0.1)
    with connect(echo) as client:
        begin = time.monotonic()
        client.sendall(MESSAGE)
        receive(client)
        assert time.monotonic() - begin >= 0.2


def test_slices_arrive_one_by_one(echo: Proxy) -> None:
    echo.toxics = Toxics(slice=1, delay=0.005)
    with connect(echo) as client:
        client.sendall(MESSAGE)
        assert len(receive(client)) == len(MESSAGE)


def test_cut_resets_the_connection_after_n_bytes(echo: Proxy) -> None:
    echo.toxics = Toxics(cut_after=len(MESSAGE) + 3, slice=1, delay=0.001)
    with connect(echo) as client:
        client.sendall(MESSAGE)
        arrived = b""
        with pytest.raises(ConnectionResetError):
            while piece := client.recv(100):
                arrived += piece
        assert MESSAGE.startswith(arrived)
        assert len(arrived) < len(MESSAGE)


def test_stall_keeps_the_connection_open_and_silent(echo: Proxy) -> None:
    echo.toxics = Toxics(stall_after=len(MESSAGE))
    with connect(echo) as client:
        client.sendall(MESSAGE)
        with pytest.raises(TimeoutError):
            client.recv(100)


def test_one_way_drop_loses_only_that_way(echo: Proxy) -> None:
    for way in Way:
        echo.toxics = Toxics(drop=way)
        with connect(echo) as client:
            client.sendall(MESSAGE)
            with pytest.raises(TimeoutError):
                client.recv(100)
            echo.toxics = Toxics()
            client.sendall(MESSAGE)
            assert b"".join(receive(client)) == MESSAGE


def ssh_through(proxy: Proxy, node: Node, lab: Lab) -> str:
    detour = ("HostName=127.0.0.1", f"Port={proxy.port}", f"HostKeyAlias={node.address}")
    options = [f"-o{option}" for option in detour]
    return run("ssh", "-F", lab.ssh_config, *options, node.name, "hostname")


def test_ssh_to_a_node_survives_slices_and_not_a_cut(shared: Shared, lab: Lab) -> None:
    node = shared("bare")
    with proxy_to(node.address, 22, Toxics(slice=1)) as proxy:
        assert ssh_through(proxy, node, lab) == f"{node.name}\n"
        proxy.toxics = Toxics(cut_after=2000)
        with pytest.raises(LabError, match="exit 255"):
            ssh_through(proxy, node, lab)
