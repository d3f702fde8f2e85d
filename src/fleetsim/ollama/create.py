"""Creates a model: from another one (shared blobs, own parameters) or from an uploaded file."""

import json
from collections.abc import Callable, Generator, Iterator

from . import store as kinds
from .gguf import NotGGUF, read_metadata
from .model import Json, config_of
from .names import BadName, Name, parse_reference
from .store import BadDigest, Layer, Store

Pull = Callable[[Name], Iterator[Json]]
Base = tuple[list[Layer], Json]

_INHERITED = ("renderer", "parser", "requires", "capabilities")
_TEXT_LAYERS = {"template": kinds.TEMPLATE, "system": kinds.SYSTEM, "license": kinds.LICENSE}


class CreateFailed(Exception):
    """The request failed; the status applies only if nothing has been sent yet."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


def create(store: Store, name: Name, body: Json, pull: Pull) -> Iterator[Json]:
    base, files = body.get("from"), body.get("files")
    if isinstance(base, str) and base:
        layers, config = yield from _from_model(store, base, pull)
    elif files == {}:
        raise CreateFailed("unknown type", 400)
    elif isinstance(files, dict):
        yield {"status": "parsing GGUF"}
        layers, config = _from_files(store, files)
    else:
        raise CreateFailed("neither 'from' or 'files' was specified", 400)

    statuses = {layer.digest: "using existing layer" for layer in layers}
    for layer, is_new in _own_layers(store, layers, body):
        layers = [one for one in layers if one.media_type != layer.media_type] + [layer]
        statuses[layer.digest] = "creating new layer" if is_new else "using existing layer"
    content = {
        **config,
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
    }
    config_layer, _ = store.add_blob(_line(content), kinds.CONFIG)

    for layer in layers:
        yield {"status": f"{statuses[layer.digest]} {layer.digest}"}
    yield {"status": "writing manifest"}
    before = store.manifest(name)
    store.write_manifest(name, config_layer, layers)
    if before:
        store.remove_unused(before.all_layers)
    yield {"status": "success"}


def _from_model(store: Store, base: str, pull: Pull) -> Generator[Json, None, Base]:
    try:
        name = parse_reference(base).name
    except BadName:
        raise CreateFailed("invalid model name", 400) from None
    if store.manifest(name) is None:
        yield from (progress for progress in pull(name) if progress["status"] != "success")
    manifest = store.manifest(name)
    if manifest is None:
        raise CreateFailed("file does not exist")
    layers = [layer._replace(parent=name.shortest) for layer in manifest.layers]
    inherited = json.loads(store.read_blob(manifest.config.digest))
    config: Json = {key: inherited[key] for key in _INHERITED if key in inherited}
    for layer in layers:
        if layer.media_type == kinds.MODEL:
            config = {**_config(store, layer.digest), **config}
    return layers, config


def _from_files(store: Store, files: dict[str, str]) -> Base:
    digest = next(iter(files.values()))
    try:
        path = store.blob_path(digest)
        size = len(store.read_blob(digest))
        return [Layer(kinds.MODEL, digest, size, path)], _config(store, digest)
    except BadDigest as error:
        raise CreateFailed(str(error)) from None
    except FileNotFoundError as error:
        raise CreateFailed(f"open {error.filename}: no such file or directory") from None


def _config(store: Store, digest: str) -> Json:
    try:
        with open(store.blob_path(digest), "rb") as file:
            return config_of(read_metadata(file))
    except NotGGUF as error:
        raise CreateFailed(str(error), 400) from None


def _own_layers(store: Store, layers: list[Layer], body: Json) -> Iterator[tuple[Layer, bool]]:
    for key, media_type in _TEXT_LAYERS.items():
        text = body.get(key)
        if isinstance(text, str) and text:
            yield store.add_blob(text.encode(), media_type)
    inherited = [layer for layer in layers if layer.media_type == kinds.PARAMS]
    given = body.get("parameters")
    parameters = dict(given) if isinstance(given, dict) else {}
    for layer in inherited:
        parameters = {**json.loads(store.read_blob(layer.digest)), **parameters}
    if parameters:
        yield store.add_blob(_line(dict(sorted(parameters.items()))), kinds.PARAMS)
    if messages := body.get("messages"):
        yield store.add_blob(_line(messages), kinds.MESSAGES)


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
