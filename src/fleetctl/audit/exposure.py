"""Ollama has no authentication: anyone who reaches its port can use, fill and empty it."""

import ipaddress

from fleetctl.audit import Audited, Found, check
from fleetctl.model import address
from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Level

_ACKNOWLEDGE = "or set `exposure: acknowledged` for the node"
_PRIVATE = f"set ollama.host to a private address, {_ACKNOWLEDGE}"


@check("EX001", Level.EXPOSURE, "every web page may use the node")
def _origins(audited: Audited) -> Found:
    node = audited.node
    origins = node.environment.get("OLLAMA_ORIGINS", "").split(",")
    if "*" in origins and not node.exposure_acknowledged:
        yield "OLLAMA_ORIGINS=* lets every web page use the node", f"name the pages, {_ACKNOWLEDGE}"


@check("EX002", Level.EXPOSURE, "Ollama would be open to the internet")
def _public_v4(audited: Audited) -> Found:
    if public := [text for text in _reached(audited) if ":" not in text]:
        at = ", ".join(public)
        yield f"Ollama on {audited.node.listens} would be open to the internet at {at}", _PRIVATE


@check("EX003", Level.WARNING, "Ollama may be reached from the internet by IPv6")
def _public_v6(audited: Audited) -> Found:
    public = _reached(audited)
    if public and all(":" in text for text in public):
        at = ", ".join(public)
        yield f"Ollama on {audited.node.listens} may be reached from the internet at {at}", _PRIVATE


@check("EX004", Level.UNKNOWN, "whether Ollama is exposed")
def _unknown(audited: Audited) -> Found:
    known = _addresses(audited)
    if isinstance(known, Unknown):
        yield f"whether it is exposed is not known, because {known.why}", None


def _reached(audited: Audited) -> list[str]:
    """The public addresses of the machine at which Ollama would answer."""
    known = _addresses(audited)
    if isinstance(known, Unknown):
        return []
    host, _ = address.split_host_port(audited.node.listens)
    reached = [own for own in known if host in (*address.ANY, own)]
    return [text for text in reached if ipaddress.ip_address(text).is_global]


def _addresses(audited: Audited) -> tuple[str, ...] | Unknown:
    """Those of the machine; none where it does not matter."""
    host, _ = address.split_host_port(audited.node.listens)
    if audited.node.exposure_acknowledged or address.is_loopback(host):
        return ()
    known = audited.facts.host.addresses
    if not isinstance(known, Unknown) and not address.is_address(host):
        return Unknown(f"ollama.host is the name {host!r}, and not an address")
    return known
