"""A running Ollama server, simulated or real, as the contract tests see it."""

import re
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

Start = Callable[..., "Server"]


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def config(self) -> dict[str, str]:
        """The values of the `server config` line."""
        [line] = re.findall(r'msg="server config" env="map\[(.*)\]"', self.log)
        keys = re.findall(r"(?:^| )([A-Za-z_]+):", line)
        # values can contain spaces and colons: split only at names of variables
        pattern = "|".join(re.escape(key) for key in keys if key.isupper() or key.endswith("proxy"))
        parts = re.split(rf"(?:^| )({pattern}):", line)[1:]
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_answering(server: Server) -> None:
    deadline = time.monotonic() + 20
    with server.client() as client:
        while time.monotonic() < deadline and server.process.poll() is None:
            try:
                client.get("/api/version").raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.02)
    pytest.fail(f"no answer from {server.url}:\n{server.log}")
