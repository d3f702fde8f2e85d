"""The real Ollama server, built once from its Go module.

The archive of a Go module omits folders named `vendor`, so three sets of headers come from
elsewhere: two from Debian packages, miniaudio from another Go module."""

import json
import os
import shutil
from pathlib import Path

from tests.lab.base import USER, USER_ID
from tests.lab.cache import made
from tests.lab.command import LabError, run

VERSION = "0.24.0"  # the newest version whose module contains the inference engine
MODULE = "github.com/ollama/ollama"
MINIAUDIO = "github.com/gen2brain/malgo@v0.11.24"


def ollama_binary() -> Path:
    return made(f"ollama-{VERSION}", f"{MODULE} {VERSION} {MINIAUDIO}", build) / "ollama"


def build(folder: Path) -> None:
    if not shutil.which("go"):
        raise LabError(f"Ollama {VERSION} is built with Go 1.26 or newer, and there is no `go`")
    headers = folder.parent / "headers"
    (headers / "miniaudio").mkdir(parents=True)
    module = json.loads(run("go", "mod", "download", "-json", MINIAUDIO))
    (headers / "miniaudio/miniaudio.h").symlink_to(Path(module["Dir"]) / "miniaudio.h")
    env = {
        **os.environ,
        "GOBIN": str(folder),
        "CGO_ENABLED": "1",
        "CGO_CPPFLAGS": f"-I{headers}",
        # Without debug information, which is stripped anyway, the build is much faster.
        "CGO_CFLAGS": "-O2",
        "CGO_CXXFLAGS": "-O2",
    }
    flags = f"-s -w -X={MODULE}/version.Version={VERSION}"
    run("go", "install", "-ldflags", flags, f"{MODULE}@v{VERSION}", env=env)


def ollama_layer(path: str) -> Path:
    """An overlay layer with the server at `path`.

    A layer and not a bind mount: on the node it is an ordinary file that can be replaced."""

    def build_layer(folder: Path) -> None:
        target = folder / path.lstrip("/")
        target.parent.mkdir(parents=True)
        shutil.copy2(ollama_binary(), target)
        home = folder / "home" / USER
        for owned in (home, *home.rglob("*")) if home.exists() else ():
            os.chown(owned, USER_ID, USER_ID)

    return made(f"ollama-{VERSION}{path.replace('/', '-')}", f"{VERSION} {path}", build_layer)
