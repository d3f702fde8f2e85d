"""A TCP proxy between controller and node that misbehaves on request.

The kernel here has no `tc netem`; a user-space proxy shows a program the same troubles.
"""

import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

RETRANSMISSION = 0.2  # seconds until TCP sends a lost packet again; twice as long each time


class Way(Enum):
    UP = "to the server"
    DOWN = "to the client"


@dataclass(slots=True)
class Toxics:
    """What the proxy does to the bytes; may be changed while connections are open."""

    delay: float = 0  # seconds before each piece goes on
    slice: int = 0  # go on in pieces of so many bytes
    cut_after: int | None = None  # both ends are reset after so many bytes in all
    stall_after: int | None = None  # nothing moves any more, the connection stays open
    drop: Way | None = None  # what goes this way is lost without a sign
    loss: float = 0  # so many of all pieces come late, after TCP has sent them again


@dataclass(slots=True)
class Proxy:
    """Listens on a port of loopback and passes on to `server` what the toxics let through."""

    server: tuple[str, int]
    toxics: Toxics = field(default_factory=Toxics)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    closed: threading.Event = field(default_factory=threading.Event)
    heard: bytearray = field(default_factory=bytearray)  # all that came from clients
    turns: list[Way] = field(default_factory=list)  # who spoke, in turn
    chance: random.Random = field(default_factory=lambda: random.Random(97))

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def serve(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self.server) as server:
            connection = Connection(self, client, server)
            upwards = threading.Thread(target=connection.pump, args=(Way.UP,), daemon=True)
            upwards.start()
            connection.pump(Way.DOWN)
            upwards.join()


@dataclass(slots=True)
class Connection:
    proxy: Proxy
    client: socket.socket
    server: socket.socket
    passed: int = 0
    cut: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self, way: Way) -> None:
        ends = (self.client, self.server)
        source, sink = ends if way is Way.UP else reversed(ends)
        sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # one end is gone, and so is the other's reason to wait
            while data := source.recv(65536):
                self.note(data, way)
                for piece in pieces(data, self.proxy.toxics.slice):
                    self.pass_on(piece, sink, way)
            if not self.cut:
                sink.shutdown(socket.SHUT_WR)

    def note(self, data: bytes, way: Way) -> None:
        with self.lock:
            if way is Way.UP:
                self.proxy.heard += data
            if self.proxy.turns[-1:] != [way]:
                self.proxy.turns.append(way)

    def pass_on(self, piece: bytes, sink: socket.socket, way: Way) -> None:
        toxics = self.proxy.toxics
        time.sleep(toxics.delay)
        again = RETRANSMISSION
        while self.proxy.chance.random() < toxics.loss:
            time.sleep(again)
            again *= 2
        with self.lock:
            room = self.room()
            self.passed += len(piece)
        if toxics.drop is not way:
            sink.sendall(piece[:room])
        if room < len(piece):
            self.end()

    def room(self) -> int:
        """How many bytes may still pass."""
        toxics = self.proxy.toxics
        limits = [at for at in (toxics.cut_after, toxics.stall_after) if at is not None]
        return max(min(limits, default=sys.maxsize) - self.passed, 0)

    def end(self) -> None:
        if self.proxy.toxics.cut_after is None:
            self.proxy.closed.wait()
        self.cut = True
        for end in (self.client, self.server):
            # Linger of zero seconds: the peer sees a reset, not an orderly end. The shutdown
            # wakes the other thread, whose open read would keep the socket alive.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.shutdown(socket.SHUT_RD)
            end.close()
        raise ConnectionResetError


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    size = size or len(data)
    return (data[start : start + size] for start in range(0, len(data), size))


@contextmanager
def proxy_to(host: str, port: int, toxics: Toxics | None = None) -> Iterator[Proxy]:
    proxy = Proxy((host, port), toxics or Toxics())
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.closed.set()
        proxy.listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which close alone would not
        proxy.listener.close()
