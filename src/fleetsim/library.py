"""Models for simulated machines: valid manifests and digests, tiny weights."""

import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from fleetsim.ollama import store as kinds
from fleetsim.ollama.gguf import read_metadata, write_metadata
from fleetsim.ollama.model import config_of
from fleetsim.ollama.names import parse_name
from fleetsim.ollama.store import Store

TOOLS_TEMPLATE = "{{ .System }}{{ range .Messages }}{{ .Content }}{{ end }}{{ .Tools }}"


class Library:
    """A folder with the layout of a model folder; pulls read from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = Store(str(folder))
        self._store.make_folders()

    def add(
        self,
        name: str,
        *,
        weights: bytes | None = None,
        context: int = 131072,
        template: str = TOOLS_TEMPLATE,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        parsed = parse_name(name)
        metadata: dict[str, int | str] = {
            "general.architecture": "llama",
            "general.file_type": 15,
            "general.name": parsed.shortest,
            "llama.context_length": context,
        }
        data = weights or write_metadata(metadata)
        layers = [self._store.add_blob(data, kinds.MODEL)[0]]
        layers.append(self._store.add_blob(template.encode(), kinds.TEMPLATE)[0])
        if parameters:
            content = json.dumps(dict(parameters)).encode()
            layers.append(self._store.add_blob(content, kinds.PARAMS)[0])
        config = {
            **config_of(read_metadata(io.BytesIO(data))),
            "architecture": "amd64",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
        config_layer, _ = self._store.add_blob(json.dumps(config).encode(), kinds.CONFIG)
        self._store.write_manifest(parsed, config_layer, layers)

    def install(self, name: str, models: Path) -> None:
        """Copy a model of the library into a machine's model folder, as if it had been pulled."""
        parsed = parse_name(name)
        if self._store.manifest(parsed) is None:
            self.add(name)
        manifest, raw = self._store.manifest(parsed), self._store.raw_manifest(parsed)
        assert manifest is not None
        assert raw is not None
        target = Store(str(models))
        target.make_folders()
        for layer in manifest.all_layers:
            shutil.copyfile(self._store.blob_path(layer.digest), target.blob_path(layer.digest))
        target.write_raw_manifest(parsed, raw)
