"""Who uses Ollama right now: connections that are open, and models that are loaded."""

from __future__ import annotations

from fleetctl.gather import answer, client, listens
from fleetctl.links import Limits, Link
from fleetctl.model.fleet import Node
from fleetctl.ollama.api import NoAnswer
from fleetctl.shell import Part

# The kernel's tables on Linux, with nothing but the shell; netstat where there are none.
_CONNECTIONS = r"""
for table in /proc/net/tcp /proc/net/tcp6; do
  [ ! -r $table ] || while read -r _ local _ state _; do
    [ "$state" != 01 ] || echo "0x${local##*:}"
  done <$table
done
[ -r /proc/net/tcp ] ||
  netstat -an -p tcp | sed -n 's/^tcp[46 ]*[0-9]* *[0-9]* *[^ ]*\.\([0-9]*\) .*ESTABLISHED.*/\1/p'
"""


def clients(link: Link, port: int, limits: Limits) -> int:
    """How many connections to that port are open, whoever's they are."""
    record = answer(link.shell(), Part("connections", _CONNECTIONS), limits)
    return [int(word, 0) for word in record.text.split()].count(port)


def loaded(link: Link, node: Node, limits: Limits) -> list[str]:
    try:
        with client(link, listens(node), limits.seconds) as api:
            return api.loaded()
    except NoAnswer:
        return []
