"""Model names: parts, defaults, the shortest form, and the `:cloud` and `:local` suffixes."""

import re
from typing import NamedTuple

_HOST, _NAMESPACE, _TAG = "registry.ollama.ai", "library", "latest"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", re.ASCII)
_HOST_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}", re.ASCII)


class BadName(ValueError):
    """Not a model name. The message is the real server's."""


class Name(NamedTuple):
    host: str
    namespace: str
    model: str
    tag: str

    @property
    def path(self) -> str:
        return "/".join(self)

    @property
    def shortest(self) -> str:
        short = f"{self.model}:{self.tag}"
        if self.host.lower() != _HOST:
            return f"{self.host}/{self.namespace}/{short}"
        if self.namespace.lower() != _NAMESPACE:
            return f"{self.namespace}/{short}"
        return short


class Reference(NamedTuple):
    """A name as a client wrote it: the model, and whether it requires or excludes the cloud."""

    base: str
    name: Name
    source: str


def parse_name(text: str) -> Name:
    rest, tag = text, _TAG
    if rest.rfind(":") > rest.rfind("/"):
        rest, _, tag = rest.rpartition(":")
    parts = rest.rsplit("/", 2)
    host = parts.pop(0).rpartition("://")[2] if len(parts) == 3 else _HOST
    namespace = parts.pop(0) if len(parts) == 2 else _NAMESPACE
    name = Name(host, namespace, parts[0], tag)
    if not valid(name):
        raise BadName("invalid model name")
    return name


def parse_reference(text: str) -> Reference:
    text = text.strip()
    if not text:
        raise BadName("model is required")
    base, source = _source(text)
    if source and _source(base)[1]:
        raise BadName(f'use either :local or :cloud, not both: "{text}"')
    return Reference(base, parse_name(base), source)


def parse_pull_reference(text: str) -> Reference:
    """Parse a name for a pull: a cloud model keeps its suffix, since a stub of that name is
    stored."""
    reference = parse_reference(text)
    if reference.source != "cloud":
        return reference
    base = reference.base
    stub = f"{base}-cloud" if base.rfind(":") > base.rfind("/") else f"{base}:cloud"
    return Reference(stub, parse_name(stub), "cloud")


def valid(name: Name) -> bool:
    return (
        _HOST_PART.fullmatch(name.host) is not None
        and all(_PART.fullmatch(part) for part in name[1:])
        and "." not in name.namespace
    )


def _source(text: str) -> tuple[str, str]:
    base, colon, suffix = text.rpartition(":")
    if colon and suffix.strip().lower() in ("cloud", "local"):
        return base, suffix.strip().lower()
    if colon and "/" not in suffix and suffix.lower().endswith("-cloud"):
        return f"{base}:{suffix[: -len('-cloud')]}", "cloud"
    return text, ""
