"""The targets of a run: nodes with the service that each should run, and the controller."""

from collections.abc import Iterable

from fleetctl import services
from fleetctl.model import ollama_log
from fleetctl.model.facts import ServiceSpec
from fleetctl.model.fleet import CONTROLLER, Fleet, Node, Ssh, Target


def targets_of(fleet: Fleet, nodes: Iterable[Node], *, controller: bool) -> tuple[Target, ...]:
    """Nodes without SSH are only routed to and watched, and so are no targets."""
    found = [target for node in nodes if (target := node_target(node))]
    return (*found, controller_of(fleet)) if controller else tuple(found)


def node_target(node: Node) -> Target | None:
    if node.ssh is None:
        return None
    return Target(node.name, node.ssh, node, services.describe(_ollama(node)))


def controller_of(fleet: Fleet) -> Target:
    return Target(CONTROLLER, Ssh("localhost"), None, folder=fleet.root)


def _ollama(node: Node) -> ServiceSpec:
    return ServiceSpec(
        name="ollama",
        title="Ollama",
        mode="system",
        scope="system",
        argv=("ollama", "serve"),
        env=node.environment,
        files=(),
        log="~/.ollama/logs/fleetctl-server.log",
        log_marks=ollama_log.MARKS,
        health=node.listens,
    )
