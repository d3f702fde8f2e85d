"""Types of the pytest fixtures for real hosts."""

from collections.abc import Callable
from typing import Protocol

from testinfra.host import Host

from tests.lab.node import Node
from tests.lab.registry import Fault


class Boot(Protocol):
    """Boots a fresh node; `jump` is the node to connect through."""

    def __call__(self, kinds: str, jump: Node | None = None) -> Node: ...


Shared = Callable[[str], Node]
Observe = Callable[[Node], Host]
SetFault = Callable[[Fault | None], None]
