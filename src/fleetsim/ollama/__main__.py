"""The command line of the simulated `ollama`: FOLDER serve, FOLDER --version."""

import os
import socket
import sys
from collections.abc import Mapping

from .behaviour import read_behaviour
from .log import refuse
from .server import loopback_address, serve
from .settings import read_settings


def main(arguments: list[str]) -> int:
    folder, *words = arguments
    match words:
        case ["serve"]:
            return serve(folder, os.environ)
        case ["-v" | "--version"]:
            return _version(folder, os.environ)
    if ".app/" in os.path.realpath(sys.argv[0]) and not _answers(folder, os.environ):
        # the command line in the app's bundle starts the app for any other command
        os.spawnvp(os.P_WAIT, "open", ["open", "-j", "-a", "Ollama"])
    refuse(folder, f"ollama: {words} is not simulated")
    print(f"Error: not simulated: ollama {' '.join(words)}", file=sys.stderr)
    return 1


def _answers(folder: str, environ: Mapping[str, str]) -> bool:
    behaviour = read_behaviour(os.path.join(folder, "ollama.json"))
    with socket.socket() as probe:
        return probe.connect_ex(loopback_address(read_settings(environ), behaviour)) == 0


def _version(folder: str, environ: Mapping[str, str]) -> int:
    behaviour = read_behaviour(os.path.join(folder, "ollama.json"))
    address = loopback_address(read_settings(environ), behaviour)
    try:
        with socket.create_connection(address, timeout=5) as server:
            server.sendall(
                b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            answer = server.makefile().read()
        running = answer.rpartition('"version":"')[2].partition('"')[0]
        print(f"ollama version is {running}")
    except OSError:
        running = ""
        print("Warning: could not connect to a running Ollama instance")
    if running != behaviour.version:
        print(f"Warning: client version is {behaviour.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
