"""How one simulated server behaves (hardware, speed, faults), read from a file that tests write.

The file is not part of the API, so no fault can be mistaken for a feature of Ollama."""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

GIB = 2**30


class Behaviour(NamedTuple):
    version: str = "0.24.0"
    library: str = ""
    """Folder that models are pulled from, with the layout of a model folder."""
    vram: int = 0
    """Memory of the GPU in bytes; 0 for a machine without GPU."""
    gpu: str = "CUDA"
    """Name of the GPU library in the server's log."""
    ports: Mapping[str, int] = {}
    """By configured port: the port on the host's loopback that is used instead."""
    addresses: tuple[str, ...] = ()
    """Addresses of the machine in addition to loopback."""
    start_seconds: float = 0.0
    """Delay between listening and answering; connections are accepted meanwhile."""
    load_seconds: float = 0.0
    pull_seconds: float = 0.0
    """Duration of the download of each missing layer."""

    when: Mapping[str, str] = {}
    """The next four faults occur only if all of these variables have these values."""
    crash_on_start: bool = False
    never_answer: bool = False
    crash_after: float = 0.0
    ignore_term: bool = False
    app_quit_seconds: float = 0.0
    """How long Ollama.app takes to quit; the real one can need half a minute."""
    app_respawn_seconds: float = 0.2
    """Delay before Ollama.app restarts its server; the real one waits a second."""
    pull_faults: Mapping[str, str] = {}
    """Fault by model, in the shortest form of its name: not-found, error, stall, cut or end."""

    def faulty(self, environ: Mapping[str, str]) -> bool:
        return all(environ.get(name) == value for name, value in self.when.items())

    @property
    def default_context(self) -> int:
        if self.vram >= 47 * GIB:
            return 262144
        return 32768 if self.vram >= 23 * GIB else 4096

    def write(self, path: str) -> None:
        # replaced atomically, since a running server may read it at any moment
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self._asdict(), file)
        os.replace(f"{path}.new", path)


def read_behaviour(path: str) -> Behaviour:
    try:
        with open(path, encoding="utf-8") as file:
            return Behaviour(**json.load(file))
    except FileNotFoundError:
        return Behaviour()
