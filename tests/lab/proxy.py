"""A TCP proxy between controller and node that injects faults.

The kernel here has no `tc netem`; a user-space proxy has the same effect on a program."""

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

RETRANSMISSION = 0.2  # seconds until TCP retransmits a lost packet; doubled each time


class Way(Enum):
    UP = "to the server"
    DOWN = "to the client"


@dataclass(slots=True)
class Toxics:
    """Faults; may be changed while connections are open."""

    delay: float = 0  # seconds before each piece is forwarded
    slice: int = 0  # forward in pieces of this many bytes
    cut_after: int | None = None  # reset both ends after this many bytes in total
    stall_after: int | None = None  # forward nothing more, but keep the connection open
    drop: Way | None = None  # discard everything in this direction
    loss: float = 0  # fraction of pieces delayed by TCP retransmission


@dataclass(slots=True)
class Proxy:
    """Listens on loopback and forwards to `server` subject to the toxics."""

    server: tuple[str, int]
    toxics: Toxics = field(default_factory=Toxics)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    closed: threading.Event = field(default_factory=threading.Event)
    heard: bytearray = field(default_factory=bytearray)  # everything that clients sent
    turns: list[Way] = field(default_factory=list)  # sequence of directions of data
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
        with suppress(OSError):  # one end has closed, so stop forwarding
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
        """Number of bytes that may still pass."""
        toxics = self.proxy.toxics
        limits = [at for at in (toxics.cut_after, toxics.stall_after) if at is not None]
        return max(min(limits, default=sys.maxsize) - self.passed, 0)

    def end(self) -> None:
        if self.proxy.toxics.cut_after is None:
            self.proxy.closed.wait()
        self.cut = True
        for end in (self.client, self.server):
            # SO_LINGER of zero seconds: the peer gets a reset. The shutdown wakes the other thread,
            # whose pending read would keep the socket alive.
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
        proxy.listener.shutdown(socket.SHUT_RDWR)  # wakes accept; close alone does not
        proxy.listener.close()
