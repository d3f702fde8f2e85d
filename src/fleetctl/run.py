"""The one path: load, connect, gather, plan, and stop there or go on."""

from __future__ import annotations

import gc
import importlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from fleetctl.errors import Exit, FleetError
from fleetctl.gather import gather, questions
from fleetctl.links import Limits, Link
from fleetctl.links.dial import Dialler
from fleetctl.links.host_keys import Ask, HostKeys
from fleetctl.links.local import LocalLink
from fleetctl.model.fleet import Fleet, Node
from fleetctl.model.plan import Lost, Result
from fleetctl.model.report import Report
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from fleetctl.shell import script

_LOG = logging.getLogger(__name__)
_WAITING = 256
"""So many nodes may be waited for at once; the dialler sees to it that fewer are worked on."""
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Request:
    fleet: Fleet
    nodes: tuple[Node, ...]
    playbook: str = "apply"
    only: frozenset[str] = frozenset()
    forks: int = 32
    timeout: float = 30
    ask: Ask | None = None
    password: Callable[[], str] | None = None
    """Asks for the password of sudo, where one is to be used."""


def look(request: Request, tell: Callable[[Result], None]) -> Report:
    """What differs on each node; a node is planned as soon as its facts are in."""
    started = time.monotonic()
    gc.freeze()  # what was loaded until now stays
    gc.enable()
    fleet = request.fleet
    playbook = read_playbook(request.playbook, fleet.root)
    templates = Templates(fleet.root)
    parts = questions(playbook)
    limits = Limits(request.timeout)
    dialler = Dialler(host_keys_of(fleet, request.ask), request.timeout, request.forks)
    password = request.password() if request.password else None

    def look_at(node: Node) -> Result:
        try:
            with open_link(dialler, node) as link:
                facts = gather(link, node, parts, limits, password)
            return plan(fleet, node, facts, playbook, templates, request.only)
        except FleetError as error:
            _LOG.debug("%s failed", node.name, exc_info=True)
            return Lost(node.name, error.message, error.hint, error.exit_code)
        except Exception as error:
            _LOG.exception("a bug, seen on %s", node.name)
            what = f"this is a bug in fleetctl: {type(error).__name__}: {error}"
            return Lost(node.name, what, "report it, with the log of this run", Exit.BUG)

    # What is needed first when a node has answered is loaded while all are waited for.
    threading.Thread(target=importlib.import_module, args=("jinja2.sandbox",), daemon=True).start()
    results: dict[str, Result] = {}
    managed = [node for node in request.nodes if node.ssh]
    for node, result in in_parallel(look_at, managed, max(request.forks, _WAITING)):
        results[node.name] = result
        tell(result)
    dialler.close()
    ordered = tuple(results[node.name] for node in managed)
    return Report(ordered, time.monotonic() - started)


def host_keys_of(fleet: Fleet, ask: Ask | None = None) -> HostKeys:
    return HostKeys(fleet.state / "known_hosts", ask)


def question_script(request: Request) -> str:
    """What would be sent to a node to gather facts."""
    return script(questions(read_playbook(request.playbook, request.fleet.root)), "NONCE")


@contextmanager
def open_link(dialler: Dialler, node: Node) -> Iterator[Link]:
    assert node.ssh is not None
    link: Link = LocalLink() if node.ssh.is_local else dialler.dial(node.name, node.ssh)
    try:
        yield link
    finally:
        link.close()


def in_parallel(
    work: Callable[[Item], Outcome], items: Iterable[Item], forks: int
) -> Iterator[tuple[Item, Outcome]]:
    """Outcomes as they come. The threads are daemons: nobody waits for them after Ctrl-C."""
    todo: queue.SimpleQueue[Item] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Item, Outcome | BaseException]] = queue.SimpleQueue()
    for item in items:
        todo.put(item)
    count = todo.qsize()

    def worker() -> None:
        while True:
            try:
                item = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((item, work(item)))
            except BaseException as error:
                done.put((item, error))

    for _ in range(min(count, forks)):
        threading.Thread(target=worker, daemon=True).start()
    for _ in range(count):
        item, outcome = done.get()
        if isinstance(outcome, BaseException):
            raise outcome
        yield item, outcome
