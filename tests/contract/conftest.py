"""The servers under test: the simulated one, and the real one if given.

`FLEETCTL_REAL_OLLAMA` is the path of the real binary. Each gets its own folder and port."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from fleetsim.installed import install_ollama
from fleetsim.ollama.behaviour import Behaviour
from tests.contract.loopback_registry import Registry, serve_registry
from tests.contract.servers import Server, Start, free_port, wait_until_answering
from tests.contract.tiny_model import tiny_model

REAL = os.environ.get("FLEETCTL_REAL_OLLAMA")


@pytest.fixture(scope="session", params=["simulated", "real"] if REAL else ["simulated"])
def command(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], list[str]]:
    if request.param == "simulated":
        installed = install_ollama(tmp_path_factory.mktemp("installed"), sys.executable)
        return lambda folder: [*installed, str(folder), "serve"]
    assert REAL
    return lambda _folder: [REAL, "serve"]


@pytest.fixture(scope="session")
def start(
    command: Callable[[Path], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Starts a server with these variables; `answers=False` for one that is expected to fail."""
    running: list[subprocess.Popen[bytes]] = []

    def starter(*, answers: bool = True, library: Path | None = None, **variables: str) -> Server:
        folder = tmp_path_factory.mktemp("ollama")
        Behaviour(library=str(library or "")).write(str(folder / "ollama.json"))
        host = f"127.0.0.1:{free_port()}"
        clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "OLLAMA_HOST": host}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command(folder), env={**clean, **variables}, stdout=log, stderr=log
            )
        running.append(process)
        server = Server(f"http://{host}", folder, process)
        if answers:
            wait_until_answering(server)
        return server

    yield starter
    for process in running:
        process.terminate()
    for process in running:
        process.wait(timeout=10)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry"), tiny_model()) as registry:
        yield registry


@pytest.fixture(scope="session")
def server(start: Start, registry: Registry) -> Server:
    return start(library=registry.folder)


@pytest.fixture
def ollama(server: Server) -> Iterator[httpx.Client]:
    """A client of a server with one model, `tiny`, and no model in memory."""
    with server.client() as client:
        data = tiny_model()
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        client.post(f"/api/blobs/{digest}", content=data).raise_for_status()
        made = client.post("/api/create", json={"model": "tiny", "files": {"tiny.gguf": digest}})
        assert '"success"' in made.text
        yield client
        for loaded in client.get("/api/ps").json()["models"]:
            client.post("/api/generate", json={"model": loaded["name"], "keep_alive": 0})
        for model in client.get("/api/tags").json()["models"]:
            client.request("DELETE", "/api/delete", json={"model": model["name"]})
