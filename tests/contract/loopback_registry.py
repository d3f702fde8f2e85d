"""A model registry on loopback, from which the real server pulls over HTTP.

Its folder has the layout of a model folder, so the simulated server can use it as its library."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fleetsim.library import Library


@dataclass(frozen=True, slots=True)
class Registry:
    folder: Path
    model: str
    missing_model: str


@contextmanager
def serve_registry(folder: Path, weights: bytes) -> Iterator[Registry]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folder))
    host = f"127.0.0.1:{httpd.server_port}"
    registry = Registry(folder, f"{host}/library/pulled:latest", f"{host}/library/missing:latest")
    Library(folder).add(registry.model, weights=weights, parameters={"num_ctx": 2048})
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        httpd.shutdown()
        httpd.server_close()


def _handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self._file()
            if not path.is_file():
                self._answer(404, b"")
                return
            data = path.read_bytes()
            if wanted := self.headers.get("Range"):
                first, last = wanted.removeprefix("bytes=").split("-")
                self._answer(206, data[int(first) : int(last) + 1])
            else:
                self._answer(200, data)

        def _file(self) -> Path:
            """/v2/NAMESPACE/MODEL/{manifests/TAG,blobs/DIGEST}"""
            _, _, namespace, model, kind, last = self.path.split("/")
            if kind == "blobs":
                return folder / "blobs" / last.replace(":", "-")
            return folder / "manifests" / self.headers["Host"] / namespace / model / last

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            # the real server takes the download address from here, even with status 200
            self.send_header("Location", self.path)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
