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


def _untrimmed(text: str) -> str:
    """Text of which Ollama takes nothing away."""
    if text != text.strip().strip("\"'"):
        raise ValueError(f"must not begin or end with blanks or quotes: {text!r}")
    return text


def _listen_address(value: object) -> str:
    text = _text(value)
    if not text.removeprefix("http://").strip("/"):
        raise ValueError("is empty; write 127.0.0.1 for loopback, or :11434 for every address")
    return address.listen_address(text)


def _duration(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a duration such as 30m or 24h")
    return duration.to_text(duration.parse(str(value)))


def _keep_alive(value: object) -> str:
    """Anything negative means forever, and so does what Ollama logs for it."""
    text = _duration(value)
    return "-1" if text.startswith("-") or text == duration.to_text(duration.LONGEST) else text


def _load_timeout(value: object) -> str:
    """Here zero means forever too."""
    text = _keep_alive(value)
    return "-1" if text == "0s" else text


def _switch(value: object) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}: Ollama takes any other for true")
    return "1" if value else "0"


_LOGGED = {"true": "1", "debug": "1", "false": "0", "info": "0", "": "0"}
"""How Ollama logs a switch; OLLAMA_DEBUG is logged as the level that it sets."""


def _seen_switch(text: str) -> str:
    return _LOGGED.get(text.lower(), text)


def _count(least: int, below: int = 2**31) -> Kind:
    def read(value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < below:
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
    return _untrimmed(text.rstrip("/")) or "/"


def _origins(value: object) -> str:
    entries = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list):
        raise ValueError("must be a list of origins such as https://chat.example")
    if not entries:
        raise ValueError("names no origin; leave it out to keep Ollama's own")
    origins = [_text(entry).strip() for entry in entries]
    if not all(re.fullmatch(r"[!-+\--~]+", origin, re.ASCII) for origin in origins):
        raise ValueError("must be a list of origins such as https://chat.example")
    return ",".join(origins)


def _free_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be text or a whole number, not {value!r}; put it in quotes")
    text = _untrimmed(str(value))
    if not text:
        raise ValueError("is empty, which Ollama's log does not tell from unset; leave it out")
    if not text.isprintable():
        raise ValueError(f"must be one line of printable text, not {text!r}")
    if re.search(r"://[^/]*@", text):
        raise ValueError("holds a user name or password, which any local user could read")
    return text


def _devices(value: object) -> str:
    """Ollama may crash where the list is empty, and its log does not show that it is."""
    if value == "":
        raise ValueError("is empty; write -1 to hide every GPU")
    return _free_text(value)


def _free_switch(value: object) -> str:
    known = {"0": False, "false": False, "1": True, "true": True}
    return _switch(known.get(str(value).lower(), value))


def _free_count(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value, re.ASCII):
        value = int(value)
    return _count(0, 2**63).read(value)


def _hosts(value: object) -> str:
    hosts = _text(value).split(",")
    if not all(re.fullmatch(r"[\w.:-]+", host, re.ASCII) for host in hosts):
        raise ValueError("must be a list of hosts such as ollama.com,models.example")
    return ",".join(hosts)


def _seen_hosts(text: str) -> str:
    return text.strip("[]").replace(" ", ",")


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
    "load_timeout": ("OLLAMA_LOAD_TIMEOUT", Kind(_load_timeout, {"type": ["string", "integer"]})),
    "models_dir": ("OLLAMA_MODELS", Kind(_absolute_path, {"type": "string", "pattern": "^/"})),
    "origins": ("OLLAMA_ORIGINS", _ORIGINS),
    "no_cloud": ("OLLAMA_NO_CLOUD", SWITCH),
    "debug": ("OLLAMA_DEBUG", SWITCH),
}
"""Inventory key under `ollama:` → the variable it sets, and the kind of its values."""

_FREE_TEXT = Kind(_free_text, {"type": ["string", "integer"]})
_DEVICES = Kind(_devices, {"type": ["string", "integer"]})
_FREE_SWITCH = Kind(_free_switch, {"type": ["boolean", "string", "integer"]}, _seen_switch)
_FREE_COUNT = Kind(_free_count, {"type": ["integer", "string"]}, str.strip)

FREE: Mapping[str, Kind] = {
    "CUDA_VISIBLE_DEVICES": _DEVICES,
    "GGML_VK_VISIBLE_DEVICES": _DEVICES,
    "GPU_DEVICE_ORDINAL": _DEVICES,
    "HIP_VISIBLE_DEVICES": _DEVICES,
    "HSA_OVERRIDE_GFX_VERSION": _FREE_TEXT,
    "HTTPS_PROXY": _FREE_TEXT,
    "LLAMA_ARG_FIT": _FREE_TEXT,
    "LLAMA_ARG_FIT_TARGET": _FREE_TEXT,
    "NO_PROXY": _FREE_TEXT,
    "OLLAMA_DEBUG_LOG_REQUESTS": _FREE_SWITCH,
    "OLLAMA_GO_TEMPLATE": _FREE_SWITCH,
    "OLLAMA_GPU_OVERHEAD": _FREE_COUNT,
    "OLLAMA_IGPU_ENABLE": _FREE_TEXT,
    "OLLAMA_LLM_LIBRARY": _FREE_TEXT,
    "OLLAMA_MAX_TRANSFER_STREAMS": _FREE_COUNT,
    "OLLAMA_NOPRUNE": _FREE_SWITCH,
    "OLLAMA_REMOTES": Kind(_hosts, {"type": "string"}, _seen_hosts),
    "OLLAMA_SCHED_SPREAD": _FREE_SWITCH,
    "OLLAMA_VULKAN": _FREE_SWITCH,
    "ROCR_VISIBLE_DEVICES": _DEVICES,
}
"""What `ollama.env` may set. Loader paths, PATH, HOME and secrets are not among them."""


def key_of(variable: str) -> str | None:
    """The typed key that sets a variable, if there is one."""
    return next((key for key, (name, _) in TYPED.items() if name == variable), None)


def kind_of(variable: str) -> Kind | None:
    key = key_of(variable)
    return TYPED[key][1] if key else FREE.get(variable)


def agrees(variable: str, wanted: str, seen: str) -> bool:
    """Whether a value means what is wanted: 24h is 24h0m0s. Ollama adds origins to those given."""
    if key_of(variable) == "origins":
        return set(wanted.split(",")) <= set(re.split(r"[\s,]+", seen.strip("[]")))
    kind = kind_of(variable)
    if kind is None:
        return seen == wanted
    try:
        return (kind.seen or kind.read)(seen.strip("\"' ")) == wanted
    except ValueError:
        return False


def in_words(variable: str, value: str) -> str:
    """A value as plans show it."""
    key, kind = key_of(variable), kind_of(variable)
    if not value:
        return "(default)"
    if key in ("keep_alive", "load_timeout"):
        return "-1 (forever)" if agrees(variable, "-1", value) else duration.shortened(value)
    if kind and kind.seen is _seen_switch:
        return {"1": "on", "0": "off"}.get(_seen_switch(value), value)
    return "(default)" if key and value == "0" else value
