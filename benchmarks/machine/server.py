#!/usr/bin/python3 -IS
"""The Ollama of a machine: prints its values as Ollama does, and answers the API.

It is up as soon as a process of Python can be, about 20 ms: its start is not what is measured.
"""

import _thread
import os
import socket

_ANSWERS = {
    b"/api/version": b'{"version": "0.24.0"}',
    b"/api/tags": b'{"models": [{"name": "qwen3:latest", "digest": "0"}, '
    b'{"name": "qwen2.5-coder:7b", "digest": "0"}]}',
}


def answer(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as requests:
        while line := requests.readline():
            while requests.readline() not in (b"\r\n", b""):
                pass
            body = _ANSWERS.get(line.split()[1], b"{}")
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)


def main() -> None:
    values = " ".join(f"{name}:{value}" for name, value in sorted(os.environ.items()))
    print(f'level=INFO msg="server config" env="map[{values}]"', flush=True)
    host, _, port = os.environ["OLLAMA_HOST"].rpartition(":")
    listener = socket.create_server((host, int(port)), backlog=100)
    while True:
        connection, _ = listener.accept()
        _thread.start_new_thread(answer, (connection,))


if __name__ == "__main__":
    main()
