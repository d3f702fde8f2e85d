"""The models in memory, their context lengths, and when they expire.

A runner belongs to a weights file, not to a name: a derived model with the same options shares its
parent's runner, and one with another context replaces it."""

import threading
import time
from collections.abc import Callable

from .behaviour import Behaviour
from .duration import FOREVER, SECOND, parse_duration
from .log import timestamp
from .model import Json, Model
from .settings import Settings

_DEFAULT_MAX_LOADED = 3
_CONTEXT_BYTES = 1024  # per token of context; an arbitrary plausible value


class Runner:
    def __init__(self, model: Model, requested_context: int) -> None:
        self.model = model
        self.requested_context = requested_context
        self.context = min(requested_context, model.trained_context or requested_context)
        self.keep_alive = 0
        self.expires = 0.0

    @property
    def size(self) -> int:
        return self.model.manifest.size + self.context * _CONTEXT_BYTES

    def touch(self) -> None:
        self.expires = time.time() + self.keep_alive / SECOND

    def listed(self, vram: int) -> Json:
        short = self.model.name.shortest
        return {
            "name": short,
            "model": short,
            "size": self.size,
            "digest": self.model.manifest.digest,
            "details": self.model.details(),
            "expires_at": timestamp(self.expires, 9),
            "size_vram": min(self.size, vram),
            "context_length": self.context,
        }


class Runners:
    def __init__(self, settings: Settings, behaviour: Behaviour) -> None:
        self._settings = settings
        self._behaviour = behaviour
        self._lock = threading.Lock()
        self._loaded: dict[str, Runner] = {}

    def use(self, model: Model, options: Json, keep_alive: int | None) -> Callable[[], None]:
        """Load the model if needed. Returns a function to call when the answer is complete."""
        context = self._context(model, options)
        if not self._has(model, context):
            time.sleep(self._behaviour.load_seconds)
        with self._lock:
            self._expire()
            runner = self._loaded.get(model.blob)
            if runner is None or runner.requested_context != context:
                self._loaded.pop(model.blob, None)
                self._make_room()
                runner = self._loaded[model.blob] = Runner(model, context)
                runner.keep_alive = self._settings.keep_alive
            if keep_alive is not None:
                runner.keep_alive = keep_alive
            # at least a second while the request runs, even for keep_alive 0
            runner.expires = time.time() + max(runner.keep_alive / SECOND, 1)
        return runner.touch

    def unload(self, model: Model) -> None:
        with self._lock:
            self._loaded.pop(model.blob, None)

    def listed(self) -> list[Json]:
        with self._lock:
            self._expire()
            runners = sorted(self._loaded.values(), key=lambda one: int(one.expires), reverse=True)
            return [runner.listed(self._behaviour.vram) for runner in runners]

    def _has(self, model: Model, context: int) -> bool:
        with self._lock:
            self._expire()
            runner = self._loaded.get(model.blob)
            return runner is not None and runner.requested_context == context

    def _context(self, model: Model, options: Json) -> int:
        wanted = options.get("num_ctx", model.options.get("num_ctx"))
        default = self._settings.context_length or self._behaviour.default_context
        return max(int(wanted) if isinstance(wanted, int | float) else default, 4)

    def _make_room(self) -> None:
        limit = self._settings.max_loaded_models or _DEFAULT_MAX_LOADED
        while len(self._loaded) >= limit:
            first = min(self._loaded.items(), key=lambda item: item[1].expires)
            del self._loaded[first[0]]

    def _expire(self) -> None:
        now = time.time()
        self._loaded = {key: one for key, one in self._loaded.items() if one.expires > now}


def request_keep_alive(value: object) -> int | None:
    """Parse keep_alive of a request: a number of seconds or a Go duration. Unlike in the
    environment, the string "300" is invalid."""
    if value is None:
        return None
    if isinstance(value, str):
        parsed = parse_duration(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        parsed = int(value * SECOND)
    else:
        kind = {bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}[type(value)]
        raise ValueError(f"Unsupported type: '{kind}'")
    return FOREVER if parsed < 0 else parsed
