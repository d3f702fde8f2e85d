"""The table of Ollama's environment variables: which inventory key sets which, and what is valid.

Ollama replaces a value that it cannot read by its default and says nothing, so every kind reads as
strictly as possible and gives the value in one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleetctl.model import address, duration


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of one kind are written in an inventory, and in the environment."""

    read: Callable[[object], str]
    json_schema: Mapping[str, object]
    seen: Callable[[str], str] | None = None
    """Reads what Ollama logs, where that is not what an inventory says."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}; put it in quotes")
    return value


def _listen_address(value: object) -> str:
    return address.listen_address(_text(value))


def _duration(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a duration such as 30m or 24h")
    return duration.to_text(duration.parse(str(value)))


def _keep_alive(value: object) -> str:
    """Anything negative is for ever, and so is what Ollama logs for it."""
    text = _duration(value)
    return "-1" if text.startswith("-") or text == duration.to_text(duration.LONGEST) else text


def _switch(value: object) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}: Ollama takes any other for true")
    return "1" if value else "0"


_LOGGED = {"true": "1", "debug": "1", "false": "0", "info": "0", "": "0"}
"""How Ollama logs a switch; OLLAMA_DEBUG is logged as the level that it sets."""


def _seen_switch(text: str) -> str:
    return _LOGGED.get(text.lower(), text)


def _count(least: int) -> Kind:
    def read(value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
            raise ValueError(f"must be a whole number of at least {least}, not {value!r}")
        return str(value)

    return Kind(read, {"type": "integer", "minimum": least}, seen=str.strip)


def _choice(*choices: str) -> Kind:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return Kind(read, {"enum": list(choices)})


def _absolute_path(value: object) -> str:
    text = _text(value)
    if not text.startswith("/") or not text.isprintable():
        raise ValueError(f"must be an absolute path, not {text!r}; a service knows no ~ or $HOME")
    return text.rstrip("/") or "/"


def _origins(value: object) -> str:
    entries = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list):
        raise ValueError("must be a list of origins such as https://chat.example")
    origins = [_text(entry).strip() for entry in entries]
    if not all(re.fullmatch(r"[!-+\--~]+", origin, re.ASCII) for origin in origins):
        raise ValueError("must be a list of origins such as https://chat.example")
    return ",".join(origins)


SWITCH = Kind(_switch, {"type": "boolean"}, _seen_switch)
_ORIGINS = Kind(_origins, {"type": ["array", "string"], "items": {"type": "string"}})

TYPED: Mapping[str, tuple[str, Kind]] = {
    "host": ("OLLAMA_HOST", Kind(_listen_address, {"type": "string"})),
    "keep_alive": ("OLLAMA_KEEP_ALIVE", Kind(_keep_alive, {"type": ["string", "integer"]})),
    "num_parallel": ("OLLAMA_NUM_PARALLEL", _count(1)),
    "max_loaded_models": ("OLLAMA_MAX_LOADED_MODELS", _count(0)),
    "max_queue": ("OLLAMA_MAX_QUEUE", _count(1)),
    "context_length": ("OLLAMA_CONTEXT_LENGTH", _count(0)),
    "flash_attention": ("OLLAMA_FLASH_ATTENTION", SWITCH),
    "kv_cache_type": ("OLLAMA_KV_CACHE_TYPE", _choice("f16", "q8_0", "q4_0")),
    "load_timeout": ("OLLAMA_LOAD_TIMEOUT", Kind(_duration, {"type": ["string", "integer"]})),
    "models_dir": ("OLLAMA_MODELS", Kind(_absolute_path, {"type": "string", "pattern": "^/"})),
    "origins": ("OLLAMA_ORIGINS", _ORIGINS),
    "no_cloud": ("OLLAMA_NO_CLOUD", SWITCH),
    "debug": ("OLLAMA_DEBUG", SWITCH),
}
"""Inventory key under `ollama:` → the variable it sets, and the kind of its values."""

FREE = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GGML_VK_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "HIP_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION",
        "HTTPS_PROXY",
        "LLAMA_ARG_FIT",
        "LLAMA_ARG_FIT_TARGET",
        "NO_PROXY",
        "OLLAMA_DEBUG_LOG_REQUESTS",
        "OLLAMA_GO_TEMPLATE",
        "OLLAMA_GPU_OVERHEAD",
        "OLLAMA_IGPU_ENABLE",
        "OLLAMA_LLM_LIBRARY",
        "OLLAMA_MAX_TRANSFER_STREAMS",
        "OLLAMA_NOPRUNE",
        "OLLAMA_REMOTES",
        "OLLAMA_SCHED_SPREAD",
        "OLLAMA_VULKAN",
        "ROCR_VISIBLE_DEVICES",
    }
)
"""What `ollama.env` may set as it is. Loader paths, PATH, HOME and secrets are not among them."""


def key_of(variable: str) -> str | None:
    """The typed key that sets a variable, if there is one."""
    return next((key for key, (name, _) in TYPED.items() if name == variable), None)


def agrees(variable: str, wanted: str, seen: str) -> bool:
    """Whether a value means what is wanted: 24h is 24h0m0s. Ollama adds origins to those given."""
    key = key_of(variable)
    if key is None:
        return seen == wanted
    if key == "origins":
        return set(wanted.split(",")) <= set(re.split(r"[\s,]+", seen.strip("[]")))
    kind = TYPED[key][1]
    try:
        return (kind.seen or kind.read)(seen.strip("\"' ")) == wanted
    except ValueError:
        return False


def in_words(variable: str, value: str) -> str:
    """A value for people to read."""
    key = key_of(variable)
    if not value:
        return "not set"
    if key == "keep_alive" and agrees(variable, "-1", value):
        return "for ever"
    if key and TYPED[key][1] is SWITCH:
        return {"1": "on", "0": "off"}.get(_seen_switch(value), value)
    return "automatic" if key and value == "0" else value


def free_value(value: object) -> str:
    """A value of `ollama.env`: a line of text, with nothing secret in it."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be text or a whole number, not {value!r}; put it in quotes")
    text = str(value)
    if not text.isprintable():
        raise ValueError(f"must be one line of printable text, not {text!r}")
    if re.search(r"://[^/]*@", text):
        raise ValueError("holds a user name or password, which any local user could read")
    return text
