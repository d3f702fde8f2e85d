"""Names of Ollama models, in the spelling that Ollama itself lists: `qwen3` is `qwen3:latest`."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"""
    (?:
        (?:(?P<host>\w[\w.:-]{0,349})/)?
        (?P<namespace>\w[\w-]{0,79})/
    )?
    (?P<model>\w[\w.-]{0,79})
    (?::(?P<tag>\w[\w.-]{0,79}))?
    """,
    re.ASCII | re.VERBOSE,
)
_REGISTRY = "registry.ollama.ai"


def normalise(text: str) -> str:
    """`[host/][namespace/]model[:tag]`, shortest form, tag always."""
    name = _NAME.fullmatch(text)
    if name is None:
        raise ValueError("is not a model name; write it like qwen2.5-coder:7b")
    host, namespace = name["host"] or "", name["namespace"] or ""
    if host.lower() == _REGISTRY:
        host = ""
    if not host and namespace == "library":
        namespace = ""
    prefix = "".join(f"{part}/" for part in (host, namespace) if part)
    return f"{prefix}{name['model']}:{name['tag'] or 'latest'}"


def is_cloud(normalised: str) -> bool:
    """Whether Ollama would send the prompt to its vendor instead of running the model."""
    tag = normalised.rpartition(":")[2].lower()
    return tag == "cloud" or tag.endswith("-cloud")
