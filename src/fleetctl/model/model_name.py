"""Names of Ollama models, in the spelling that Ollama itself lists: `qwen3` is `qwen3:latest`."""

from __future__ import annotations

import re

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}", re.ASCII)
_MODEL = _TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", re.ASCII)
_REGISTRY = "registry.ollama.ai"


def normalise(text: str) -> str:
    """`[host/][namespace/]model[:tag]`, shortest form, tag always."""
    path, name = text.rpartition("/")[::2]
    model, colon, tag = name.partition(":")
    host, _, namespace = path.rpartition("/")
    parts = [(host, _HOST), (namespace, _NAMESPACE), (model, _MODEL), (tag, _TAG)]
    given = [part for part in parts if part[0]]
    if not model or (colon and not tag) or not all(rule.fullmatch(part) for part, rule in given):
        raise ValueError("is not a model name; write it like qwen2.5-coder:7b")
    if host.lower() == _REGISTRY:
        host = ""
    if not host and namespace == "library":
        namespace = ""
    prefix = "".join(f"{part}/" for part in (host, namespace) if part)
    return f"{prefix}{model}:{tag or 'latest'}"


def is_cloud(normalised: str) -> bool:
    """Whether Ollama would send the prompt to its vendor instead of running the model."""
    tag = normalised.rpartition(":")[2].lower()
    return tag == "cloud" or tag.endswith("-cloud")
