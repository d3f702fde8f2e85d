"""The model folder: manifests by name and blobs by digest, in the layout of the real server.

The library that models are pulled from has the same layout."""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .names import Name, valid

MODEL = "application/vnd.ollama.image.model"
TEMPLATE = "application/vnd.ollama.image.template"
SYSTEM = "application/vnd.ollama.image.system"
PARAMS = "application/vnd.ollama.image.params"
MESSAGES = "application/vnd.ollama.image.messages"
LICENSE = "application/vnd.ollama.image.license"
CONFIG = "application/vnd.docker.container.image.v1+json"

_DIGEST = re.compile(r"sha256[:-][0-9a-fA-F]{64}")
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_PRUNE_GRACE_SECONDS = 3600


class BadDigest(ValueError):
    """Not a sha256 digest."""


class Layer(NamedTuple):
    media_type: str
    digest: str
    size: int
    parent: str = ""

    def as_json(self) -> dict[str, object]:
        found = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        return {**found, "from": self.parent} if self.parent else found


class Manifest(NamedTuple):
    name: Name
    config: Layer
    layers: tuple[Layer, ...]
    digest: str
    modified: float

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        return (*self.layers, self.config)

    @property
    def size(self) -> int:
        return sum(layer.size for layer in self.all_layers)


class Store:
    def __init__(self, root: str) -> None:
        self.root = root
        self._blobs = os.path.join(root, "blobs")
        self._manifests = os.path.join(root, "manifests")

    def make_folders(self) -> None:
        os.makedirs(self._blobs, exist_ok=True)
        os.makedirs(self._manifests, exist_ok=True)

    def manifests(self) -> Iterator[Manifest]:
        for folder, _, files in os.walk(self._manifests):
            parts = os.path.relpath(folder, self._manifests).split(os.sep)
            if len(parts) != 3:
                continue
            for tag in files:
                name = Name(parts[0], parts[1], parts[2], tag)
                if valid(name) and (manifest := self.manifest(name)):
                    yield manifest

    def manifest(self, name: Name) -> Manifest | None:
        path = os.path.join(self._manifests, name.path)
        try:
            with open(path, "rb") as file:
                data = file.read()
            parsed = json.loads(data)
            layers = tuple(_layer(layer) for layer in parsed["layers"])
            digest = hashlib.sha256(data).hexdigest()
            return Manifest(name, _layer(parsed["config"]), layers, digest, os.stat(path).st_mtime)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def existing_name(self, name: Name) -> Name:
        """The name in the spelling that is already stored, part by part."""
        for manifest in self.manifests():
            name = Name(
                *(
                    mine if mine.lower() == given.lower() else given
                    for mine, given in zip(manifest.name, name, strict=True)
                )
            )
        return name

    def write_manifest(self, name: Name, config: Layer, layers: Iterable[Layer]) -> None:
        content = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": config.as_json(),
            "layers": [layer.as_json() for layer in layers],
        }
        self.write_raw_manifest(name, json.dumps(content, separators=(",", ":")).encode() + b"\n")

    def write_raw_manifest(self, name: Name, data: bytes) -> None:
        path = os.path.join(self._manifests, name.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def raw_manifest(self, name: Name) -> bytes | None:
        try:
            with open(os.path.join(self._manifests, name.path), "rb") as file:
                return file.read()
        except OSError:
            return None

    def blob_path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise BadDigest("invalid digest format")
        return os.path.join(self._blobs, digest.replace(":", "-"))

    def has_blob(self, digest: str) -> bool:
        return os.path.exists(self.blob_path(digest))

    def read_blob(self, digest: str) -> bytes:
        with open(self.blob_path(digest), "rb") as file:
            return file.read()

    def add_blob(self, data: bytes, media_type: str) -> tuple[Layer, bool]:
        """Returns the layer, and whether it is new."""
        layer = Layer(media_type, "sha256:" + hashlib.sha256(data).hexdigest(), len(data))
        path = self.blob_path(layer.digest)
        if os.path.exists(path):
            os.utime(path)
            return layer, False
        partial = f"{path}-new"
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, path)
        return layer, True

    def remove(self, manifest: Manifest) -> None:
        path = os.path.join(self._manifests, manifest.name.path)
        os.remove(path)
        self._remove_empty_parents(path)
        self.remove_unused(manifest.all_layers)

    def remove_unused(self, layers: Iterable[Layer]) -> None:
        used = {layer.digest for other in self.manifests() for layer in other.all_layers}
        for layer in layers:
            if layer.digest not in used and self.has_blob(layer.digest):
                os.remove(self.blob_path(layer.digest))

    def prune(self) -> int:
        """Remove unreferenced blobs and partial downloads older than an hour, as at each start."""
        used = {layer.digest for manifest in self.manifests() for layer in manifest.all_layers}
        old = time.time() - _PRUNE_GRACE_SECONDS
        count = 0
        for entry in os.scandir(self._blobs):
            if entry.stat().st_mtime > old:
                continue
            complete = _DIGEST.fullmatch(entry.name) is not None
            count += complete
            if entry.name.replace("-", ":", 1) not in used:
                os.remove(entry.path)
        return count

    def _remove_empty_parents(self, path: str) -> None:
        for _ in range(3):
            path = os.path.dirname(path)
            try:
                os.rmdir(path)
            except OSError:
                return


def _layer(found: dict[str, object]) -> Layer:
    size = found["size"]
    if not isinstance(size, int):
        raise TypeError("size")
    return Layer(str(found["mediaType"]), str(found["digest"]), size, str(found.get("from", "")))
