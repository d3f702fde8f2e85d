"""The server's settings from its environment: trimmed and normalised, invalid values ignored."""

import ipaddress
import json
from collections.abc import Mapping
from typing import NamedTuple

from . import log
from .duration import FOREVER, MINUTE, SECOND, format_duration, parse_duration

_SCHEME_PORTS = {"http": 80, "https": 443}
_OWN_ORIGINS = [
    f"{scheme}://{host}{port}"
    for host in ("localhost", "127.0.0.1", "0.0.0.0")
    for port in ("", ":*")
    for scheme in ("http", "https")
] + ["app://*", "file://*", "tauri://*", "vscode-webview://*", "vscode-file://*"]

_FLAGS = (
    "OLLAMA_DEBUG_LOG_REQUESTS",
    "OLLAMA_FLASH_ATTENTION",
    "OLLAMA_MULTIUSER_CACHE",
    "OLLAMA_NEW_ENGINE",
    "OLLAMA_NOHISTORY",
    "OLLAMA_NOPRUNE",
    "OLLAMA_SCHED_SPREAD",
    "OLLAMA_VULKAN",
)
_NUMBERS = {
    "OLLAMA_CONTEXT_LENGTH": 0,
    "OLLAMA_GPU_OVERHEAD": 0,
    "OLLAMA_MAX_LOADED_MODELS": 0,
    "OLLAMA_MAX_QUEUE": 512,
    "OLLAMA_MAX_TRANSFER_STREAMS": 4,
    "OLLAMA_NUM_PARALLEL": 1,
}
_TEXTS = (
    "CUDA_VISIBLE_DEVICES",
    "GGML_VK_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "OLLAMA_EDITOR",
    "OLLAMA_KV_CACHE_TYPE",
    "OLLAMA_LLM_LIBRARY",
    "ROCR_VISIBLE_DEVICES",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


class Settings(NamedTuple):
    """The effective values. `shown` has the values as printed in the `server config` line, by
    variable."""

    host: str
    port: int
    models: str
    keep_alive: int
    context_length: int
    max_loaded_models: int
    no_prune: bool
    no_cloud: bool
    no_cloud_source: str
    shown: dict[str, str]


def read_settings(environ: Mapping[str, str]) -> Settings:
    def variable(name: str) -> str:
        return environ.get(name, "").strip().strip("\"'")

    home = environ.get("HOME", "")
    scheme, host, port, path = _host(variable("OLLAMA_HOST"))
    keep_alive = _seconds(variable("OLLAMA_KEEP_ALIVE"))
    load_timeout = _seconds(variable("OLLAMA_LOAD_TIMEOUT"))
    numbers = {name: _number(name, variable(name), other) for name, other in _NUMBERS.items()}
    flags = {name: _flag(variable(name)) for name in _FLAGS}
    models = variable("OLLAMA_MODELS") or f"{home}/.ollama/models"
    no_cloud, no_cloud_source = cloud(variable("OLLAMA_NO_CLOUD"), home)
    origins = [*filter(None, variable("OLLAMA_ORIGINS").split(",")), *_OWN_ORIGINS]
    remotes = (variable("OLLAMA_REMOTES") or "ollama.com").split(",")
    shown = {
        **{name: variable(name) for name in _TEXTS},
        **{name: str(value) for name, value in numbers.items()},
        **{name: _bool(value) for name, value in flags.items()},
        "OLLAMA_DEBUG": _level(variable("OLLAMA_DEBUG")),
        "OLLAMA_HOST": f"{scheme}://{joined(host, port)}" + (f"/{path}" if path else ""),
        "OLLAMA_KEEP_ALIVE": format_duration(keep_alive),
        "OLLAMA_LOAD_TIMEOUT": format_duration(load_timeout or FOREVER),
        "OLLAMA_MODELS": models,
        "OLLAMA_NO_CLOUD": _bool(no_cloud),
        "OLLAMA_ORIGINS": f"[{' '.join(origins)}]",
        "OLLAMA_REMOTES": f"[{' '.join(remotes)}]",
    }
    return Settings(
        host=host,
        port=port,
        models=models,
        keep_alive=keep_alive,
        context_length=numbers["OLLAMA_CONTEXT_LENGTH"],
        max_loaded_models=numbers["OLLAMA_MAX_LOADED_MODELS"],
        no_prune=flags["OLLAMA_NOPRUNE"],
        no_cloud=no_cloud,
        no_cloud_source=no_cloud_source,
        shown=shown,
    )


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host(text: str) -> tuple[str, str, int, str]:
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest, default = "http", text, 11434
    else:
        default = _SCHEME_PORTS.get(scheme, 11434)
    hostport, _, path = rest.partition("/")
    host, port = _split_host_port(hostport)
    if port is None:
        return scheme, _address(hostport), default, path
    if port.isascii() and port.isdigit() and int(port) <= 65535:
        return scheme, host, int(port), path
    log.warn("config.go:52", "invalid port, using default", port=port, default=default)
    return scheme, host, default, path


def _split_host_port(hostport: str) -> tuple[str, str | None]:
    """Go's net.SplitHostPort; port None where that fails."""
    if hostport.startswith("["):
        host, bracket, port = hostport[1:].partition("]:")
        return (host, port) if bracket and ":" not in port else (hostport, None)
    host, colon, port = hostport.partition(":")
    return (host, port) if colon and ":" not in port else (hostport, None)


def _address(hostport: str) -> str:
    try:
        return str(ipaddress.ip_address(hostport.strip("[]")))
    except ValueError:
        return hostport or "127.0.0.1"


def _seconds(text: str) -> int:
    """A Go duration or a whole number of seconds. Negative is forever, invalid is five minutes."""
    value = 5 * MINUTE
    try:
        value = parse_duration(text)
    except ValueError:
        if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit():
            value = int(text) * SECOND
    return FOREVER if value < 0 else value


def _number(name: str, text: str, default: int) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    if text:
        message = "invalid environment variable, using default"
        log.warn("config.go:263", message, key=name, value=text, default=default)
    return default


def _flag(text: str) -> bool:
    """Unset is off; anything that Go does not parse as false is on, so `no` means on."""
    return text not in ("", "0", "f", "F", "false", "False", "FALSE")


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _level(text: str) -> str:
    if text in ("1", "t", "T", "true", "True", "TRUE"):
        return "DEBUG"
    try:
        level = int(text) * -4
    except ValueError:
        level = 0
    for name, floor in (("ERROR", 8), ("WARN", 4), ("INFO", 0), ("DEBUG", -(2**63))):
        if level >= floor:
            base = -4 if name == "DEBUG" else floor
            return name if level == base else f"{name}{level - base:+d}"
    raise AssertionError("the last floor is below every level")


def cloud(variable: str, home: str) -> tuple[bool, str]:
    """Whether the cloud is disabled, and by what."""
    by_environment, by_config = _flag(variable), False
    try:
        with open(f"{home}/.ollama/server.json", encoding="utf-8") as file:
            by_config = json.load(file).get("disable_ollama_cloud") is True
    except (OSError, ValueError, AttributeError):
        pass  # the real server also ignores an unusable file
    names = {(0, 0): "none", (1, 0): "env", (0, 1): "config", (1, 1): "both"}
    return by_environment or by_config, names[by_environment, by_config]
