"""Addresses that servers listen on and URLs that clients use, read the way Ollama reads them."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

OLLAMA_PORT = 11434
ANY = ("0.0.0.0", "::")  # noqa: S104
"""What a server listens on that takes connections from everywhere."""
_NO_URL = "is not a URL; write it like http://192.168.1.50:11434"
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.(?!-)[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)


def listen_address(text: str) -> str:
    """`host:port` of OLLAMA_HOST; without a port it is 11434, or 80 after `http://`.

    Only `:port` means every address; nothing at all is loopback.
    """
    scheme, separator, rest = text.rpartition("://")
    if scheme not in ("", "http"):
        raise ValueError(f"has the scheme {scheme!r}; Ollama serves plain http")
    if "/" in rest.removesuffix("/"):
        raise ValueError("has a path; write host:port")
    host, port = split_host_port(rest.removesuffix("/"))
    host = host or ("0.0.0.0" if port else "127.0.0.1")  # noqa: S104
    return join_host_port(host, port or (80 if separator else OLLAMA_PORT))


def endpoint(text: str) -> str:
    """A base URL without a trailing slash."""
    try:
        url = urlsplit(text)
    except ValueError:
        raise ValueError(_NO_URL) from None
    if url.scheme not in ("http", "https") or not url.netloc:
        raise ValueError(_NO_URL)
    if "@" in url.netloc:
        raise ValueError("holds a user name or password; nothing secret belongs in an inventory")
    if url.query or url.fragment:
        raise ValueError("has a query or fragment; write only scheme, host and port")
    host, port = split_host_port(url.netloc)
    if not host:
        raise ValueError("has no host; write it like http://192.168.1.50:11434")
    where = join_host_port(host, port) if port else _bracketed(host)
    return f"{url.scheme}://{where}{url.path.rstrip('/')}"


def host_of(endpoint: str) -> str:
    """Of a URL, in which the `%` before an IPv6 address's zone is written as `%25`."""
    return unquote(urlsplit(endpoint).hostname or "")


@lru_cache
def split_host_port(text: str) -> tuple[str, int | None]:
    """`[::1]:80` → `::1`, 80; a bare IPv6 address has no port."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError("has an unclosed bracket; write an IPv6 address like [::1]:11434")
        return valid_host(host), _port(rest[1:]) if rest else None
    if text.count(":") > 1:
        return valid_host(text), None
    host, colon, port = text.partition(":")
    return valid_host(host) if host else "", _port(port) if colon else None


def join_host_port(host: str, port: int) -> str:
    return f"{_bracketed(host)}:{port}"


def valid_host(text: str) -> str:
    """A host name or an IP address; an IPv6 address may carry a `%zone`."""
    if ":" in text or re.fullmatch(r"[\d.]+", text):
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            raise ValueError(f"{text!r} is not an IP address") from None
    if not _HOST_NAME.fullmatch(text) or len(text) > 253:
        raise ValueError(f"{text!r} is not a host name")
    return text


@lru_cache
def is_loopback(host: str) -> bool:
    named = host.lower() == "localhost"
    return named or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def place_of(listens: str) -> tuple[str, int]:
    """Host and port at which a machine reaches its own server that listens there."""
    host, port = split_host_port(listen_address(listens))
    return "127.0.0.1" if host in ANY else host, port or OLLAMA_PORT


def is_address(host: str) -> bool:
    """And not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _port(text: str) -> int:
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII) or not 1 <= int(text) <= 65535:
        raise ValueError(f"has the port {text!r}; a port is a number from 1 to 65535")
    return int(text)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
