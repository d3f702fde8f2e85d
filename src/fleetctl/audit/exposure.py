"""Ollama has no passwords: who reaches its port may use, fill and empty it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from fleetctl.model import address
from fleetctl.model.facts import Facts, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Finding, Level

_ACKNOWLEDGE = "or say `exposure: acknowledged` for the node"
_PRIVATE = f"set ollama.host to a private address, {_ACKNOWLEDGE}"


def findings(node: Node, facts: Facts) -> Iterator[Finding]:
    if node.exposure_acknowledged:
        return
    if "*" in node.environment.get("OLLAMA_ORIGINS", "").split(","):
        text = "OLLAMA_ORIGINS=* lets every web page use the node"
        yield Finding(Level.EXPOSURE, text, f"name the pages, {_ACKNOWLEDGE}")
    host, _ = address.split_host_port(node.listens)
    if address.is_loopback(host):
        return
    known = facts.host.addresses
    if not isinstance(known, Unknown) and not address.is_address(host):
        known = Unknown(f"ollama.host is the name {host!r}, and not an address")
    if isinstance(known, Unknown):
        yield Finding(Level.UNKNOWN, f"whether it is exposed is not known, because {known.why}")
        return
    reached = [own for own in known if host in (*address.ANY, own)]
    public = [text for text in reached if ipaddress.ip_address(text).is_global]
    if v4 := [text for text in public if ":" not in text]:
        text = f"Ollama on {node.listens} would be open to the internet at {', '.join(v4)}"
        yield Finding(Level.EXPOSURE, text, _PRIVATE)
    elif public:
        text = f"Ollama on {node.listens} may be reached from the internet at {', '.join(public)}"
        yield Finding(Level.WARNING, text, _PRIVATE)
