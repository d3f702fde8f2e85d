"""The public Python interface: open connections to the nodes of an inventory.

`import fleetctl` offers it as `fleetctl.connections`; docs/scripting.md explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import find, load, select
from fleetctl.links import Connector, HostKeys
from fleetctl.model.fleet import Ssh

if TYPE_CHECKING:
    from fabric import Connection

_MAX_THREADS = 32


@contextmanager
def connections(
    limit: str | None = None, inventory: str | Path | None = None, *, timeout: float = 30
) -> Iterator[dict[str, Connection]]:
    """Fabric connections to the nodes of an inventory, by node name, open inside `with`.

    `limit` selects nodes as `--limit` does; `inventory` is the file, looked up as the commands do
    if it is None. Nodes without SSH, and this machine itself, are left out. Host keys, user keys,
    jump hosts and ~/.ssh/config are those of fleetctl's own commands; an unknown host key is an
    error. Raises FleetError if the inventory is invalid or any node cannot be connected to.
    """
    fleet, _ = load(find(Path(inventory) if inventory else None))
    nodes = {
        node.name: node.ssh
        for node in select(fleet, limit)
        if node.ssh is not None and not node.ssh.is_local
    }
    with ExitStack() as opened:
        connector = Connector(HostKeys(fleet.state / "known_hosts"), timeout, max(len(nodes), 1))
        opened.enter_context(closing(connector))
        yield _connect_all(connector, nodes, opened)


def _connect_all(
    connector: Connector, nodes: Mapping[str, Ssh], opened: ExitStack
) -> dict[str, Connection]:
    def connect(name: str, ssh: Ssh) -> Connection | FleetError:
        try:
            link = connector.connect(name, ssh)
        except FleetError as error:
            return FleetError(
                f"{name}: {error.message}", hint=error.hint, exit_code=error.exit_code
            )
        opened.callback(link.close)
        return link.connection

    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        results = dict(zip(nodes, pool.map(connect, nodes, nodes.values()), strict=True))
    errors = [result for result in results.values() if isinstance(result, FleetError)]
    if errors:
        raise FleetError(
            "; ".join(error.message for error in errors),
            hint=errors[0].hint,
            exit_code=Exit.worst(error.exit_code for error in errors),
        )
    return results
