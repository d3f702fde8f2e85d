"""A substitute for Ollama's model registry, under its real name and with a test certificate.

Runs as a separate process: `python -m tests.lab.registry STATE ADDRESS…`. Faults are read from
`STATE/faults.json` at each request, so they can be switched at any time; requests are appended to
`STATE/registry.log`, one JSON object per line."""

import json
import re
import socket
import ssl
import sys
import threading
import time
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.lab.credentials import credentials
from tests.lab.models import model_store

PORT = 443
SLOW_CHUNK, SLOW_PAUSE = 8192, 0.25


class Fault(StrEnum):
    """Faults of a model: the first four apply to its manifest, the others to its blob."""

    NOT_FOUND = "404"
    TOO_MANY = "429"
    SERVER_ERROR = "500"
    HTML = "html"  # the answer of a captive portal
    SLOW = "slow"
    CUT = "cut"
    STALL = "stall"
    WRONG_DIGEST = "wrong-digest"


def set_fault(state: Path, model: str, fault: Fault | None) -> None:
    """Set the fault of one model; None clears it."""
    faults: dict[str, str] = {**read_faults(state)}
    faults.pop(model, None)
    if fault:
        faults[model] = fault
    fresh = state / "faults.new"
    fresh.write_text(json.dumps(faults))
    fresh.rename(state / "faults.json")


def read_faults(state: Path) -> dict[str, Fault]:
    path = state / "faults.json"
    text = path.read_text() if path.exists() else "{}"
    return {model: Fault(fault) for model, fault in json.loads(text).items()}


class Registry(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, state: Path, address: str) -> None:
        self.state, self.store = state, model_store()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(credentials() / "registry.pem")
        super().__init__((address, PORT), Answer)

    def get_request(self) -> tuple[socket.socket, object]:
        # the TLS handshake runs in the connection's own thread, so a silent client blocks no other
        plain, peer = super().get_request()
        return self.tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), peer

    def weights_fault(self, digest: str) -> Fault | None:
        """The fault of the model that has these weights; the small blobs are shared between
        models."""
        for model, fault in read_faults(self.state).items():
            manifest = self.store / "manifests" / model.replace(":", "/")
            if json.loads(manifest.read_text())["layers"][0]["digest"] == digest:
                return fault
        return None


class Answer(BaseHTTPRequestHandler):
    server: Registry
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if found := re.fullmatch(r"/v2/library/([\w.-]+)/manifests/([\w.-]+)", self.path):
            self.manifest(*found.groups())
        elif found := re.fullmatch(r"/v2/library/[\w.-]+/blobs/(sha256:[0-9a-f]{64})", self.path):
            self.blob(found[1])
        else:
            self.error(404)

    def manifest(self, model: str, tag: str) -> None:
        path = self.server.store / "manifests" / model / tag
        fault = read_faults(self.server.state).get(f"{model}:{tag}")
        if fault is Fault.HTML:
            self.reply(200, b"<html><body>Please log in.</body></html>", "text/html")
        elif fault in (Fault.NOT_FOUND, Fault.TOO_MANY, Fault.SERVER_ERROR):
            self.error(int(fault))
        elif not path.is_file():
            self.error(404)
        else:
            content = path.read_bytes()
            self.reply(200, content, json.loads(content)["mediaType"])

    def blob(self, digest: str) -> None:
        path = self.server.store / "blobs" / digest
        if not path.is_file():
            self.error(404)
            return
        content = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            # Ollama takes the download address from `Location`, and requests ranges there
            self.reply(200, content, "application/octet-stream", location=self.path)
            return
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        self.faulty_range(content[first : last + 1], self.server.weights_fault(digest))

    def faulty_range(self, part: bytes, fault: Fault | None) -> None:
        if fault is Fault.WRONG_DIGEST:
            part = bytes(byte ^ 1 for byte in part)
        self.head(206, len(part), "application/octet-stream")
        if fault is Fault.SLOW:
            for start in range(0, len(part), SLOW_CHUNK):
                self.wfile.write(part[start : start + SLOW_CHUNK])
                time.sleep(SLOW_PAUSE)
        elif fault in (Fault.CUT, Fault.STALL):
            self.wfile.write(part[: len(part) // 2])
            if fault is Fault.STALL:
                self.rfile.read(1)  # blocks until the client disconnects
            self.close_connection = True
        else:
            self.wfile.write(part)

    def error(self, status: int) -> None:
        body = json.dumps({"errors": [{"code": str(status), "message": "fault of the lab"}]})
        self.reply(status, body.encode(), "application/json")

    def reply(self, status: int, body: bytes, media_type: str, location: str = "") -> None:
        self.head(status, len(body), media_type, location)
        if self.command != "HEAD":
            self.wfile.write(body)

    def head(self, status: int, length: int, media_type: str, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(length))
        if location:
            self.send_header("Location", location)
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        entry = {
            "from": self.client_address[0],
            "method": self.command,
            "path": self.path,
            "range": self.headers.get("Range"),
            "status": int(code),
        }
        with (self.server.state / "registry.log").open("a") as log:
            log.write(json.dumps(entry) + "\n")


def main(state: str, *addresses: str) -> None:
    servers = [Registry(Path(state), address) for address in addresses]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
