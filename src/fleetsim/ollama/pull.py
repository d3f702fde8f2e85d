"""Pulls a model from the library folder, as a stream of progress objects that can contain
errors."""

import os
import time
from collections.abc import Iterator

from .behaviour import Behaviour
from .http import ConnectionCut
from .model import Json
from .names import Name
from .store import Layer, Store

_TICK_SECONDS = 0.06
_SLICES = 8


class PullFailed(Exception):
    """The pull failed; the message is sent in the stream."""


def pull(store: Store, name: Name, behaviour: Behaviour, prune: bool) -> Iterator[Json]:
    fault = behaviour.pull_faults.get(name.shortest, "")
    before = store.manifest(name)
    library = Store(behaviour.library)
    manifest = library.manifest(name) if behaviour.library and fault != "not-found" else None
    raw = library.raw_manifest(name)
    yield {"status": "pulling manifest"}
    if manifest is None or raw is None:
        raise PullFailed("pull model manifest: file does not exist")
    for layer in manifest.all_layers:
        yield from _fetch(library, store, layer, behaviour.pull_seconds, fault)
    if fault == "end":
        return
    yield {"status": "verifying sha256 digest"}
    yield {"status": "writing manifest"}
    store.write_raw_manifest(name, raw)
    after = {layer.digest for layer in manifest.all_layers}
    unused = [layer for layer in before.all_layers if layer.digest not in after] if before else []
    if prune and unused:
        yield {"status": "removing unused layers"}
        store.remove_unused(unused)
    yield {"status": "success"}


def _fetch(
    library: Store, store: Store, layer: Layer, seconds: float, fault: str
) -> Iterator[Json]:
    status = f"pulling {layer.digest[7:19]}"
    whole: Json = {"status": status, "digest": layer.digest, "total": layer.size}
    path = store.blob_path(layer.digest)
    if os.path.exists(path):
        yield {**whole, "completed": layer.size}
        return
    # the real server omits `completed` while it is 0
    yield whole
    partial = f"{path}-partial"
    with open(library.blob_path(layer.digest), "rb") as source, open(partial, "wb") as target:
        step = -(-layer.size // _SLICES)
        while data := source.read(step):
            time.sleep(seconds / _SLICES)
            target.write(data)
            yield {**whole, "completed": target.tell()}
            yield from _inject_fault(fault, {**whole, "completed": target.tell()})
    os.replace(partial, path)


def _inject_fault(fault: str, progress: Json) -> Iterator[Json]:
    if fault == "error":
        raise PullFailed("max retries exceeded: unexpected EOF")
    if fault == "cut":
        raise ConnectionCut
    while fault == "stall":
        time.sleep(_TICK_SECONDS)
        yield progress
