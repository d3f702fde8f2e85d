"""How one simulated server behaves (its hardware, speed and faults), from a file that tests write.

The file is not part of the API, so no fault can be mistaken for a feature of Ollama."""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

GIB = 2**30


class Behaviour(NamedTuple):
    version: str = "0.24.0"
    library: str = ""
    """Folder that models are pulled from; laid out like a model folder."""
    vram: int = 0
    """Bytes of the one GPU; 0 is a machine without."""
    gpu: str = "CUDA"
    """What the server says it computes with."""
    ports: Mapping[str, int] = {}
    """Port that the server is told to use: port on the loopback of the test machine."""
    addresses: tuple[str, ...] = ()
    """Addresses of the machine beside loopback."""
    start_seconds: float = 0.0
    """Between listening and serving: connections are accepted and wait."""
    load_seconds: float = 0.0
    pull_seconds: float = 0.0
    """How long each missing layer takes to arrive."""

    when: Mapping[str, str] = {}
    """The faults of the next four lines happen only if all of these variables have these values."""
    crash_on_start: bool = False
    never_answer: bool = False
    crash_after: float = 0.0
    ignore_term: bool = False
    app_quit_seconds: float = 0.0
    """How long Ollama.app takes to quit; the real one may need half a minute."""
    app_respawn_seconds: float = 0.2
    """Until it starts its server again; the real one waits a second."""
    pull_faults: Mapping[str, str] = {}
    """Model, in its shortest form: not-found, error, stall, cut or end."""

    def faulty(self, environ: Mapping[str, str]) -> bool:
        return all(environ.get(name) == value for name, value in self.when.items())

    @property
    def default_context(self) -> int:
        if self.vram >= 47 * GIB:
            return 262144
        return 32768 if self.vram >= 23 * GIB else 4096

    def write(self, path: str) -> None:
        # a running server may read it at any moment
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self._asdict(), file)
        os.replace(f"{path}.new", path)


def read_behaviour(path: str) -> Behaviour:
    try:
        with open(path, encoding="utf-8") as file:
            return Behaviour(**json.load(file))
    except FileNotFoundError:
        return Behaviour()
