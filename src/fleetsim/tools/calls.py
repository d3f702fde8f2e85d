"""How a simulated tool reaches the process that runs its machine, and how its options are parsed.

The installed tool is a few lines of Python that send the arguments over loopback and print the answer;
scripts call tools often, so the client must start fast."""

import secrets
import shlex
import socket
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CLIENT = """\
#!{python} -IS
import _socket, os, sys
call = [{token!r}, {name!r}, os.getcwd(), str(os.getpid()), str(os.getuid()), str(len(sys.argv))]
call += sys.argv[1:] + ["=".join(pair) for pair in os.environ.items()]
machine = _socket.socket()
machine.connect(("127.0.0.1", {port}))
machine.sendall(os.fsencode("\\0".join(call)))
machine.shutdown(_socket.SHUT_WR)
answer = b""
while part := machine.recv(65536):
    answer += part
code, out, err, *becomes = answer.split(b"\\0")
os.write(1, out) if out else None
os.write(2, err) if err else None
os.execvp(becomes[0], becomes) if becomes else os._exit(int(code or 125))
"""
_SCRIPT = """\
#!/bin/sh
case "$*" in
{cases}
*) echo "{name}: not simulated: $*" >&2; echo "{name} $*" >>{refused}; exit 125 ;;
esac
"""


class Refused(Exception):
    """The tool was asked for something that is not simulated."""


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked, and by whom."""

    folder: Path
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    pid: int = 0
    uid: int = -1


@dataclass(frozen=True, slots=True)
class Answer:
    out: str = ""
    err: str = ""
    code: int = 0
    becomes: tuple[str, ...] = ()
    """A command that the tool is replaced by."""


Tool = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Bench:
    """The tools of one machine, and where their refusals go."""

    tools: Mapping[str, Tool]
    refuse: Callable[[str], None]

    def answer(self, name: str, call: Call) -> Answer:
        try:
            return self.tools[name](call)
        except Refused as refused:
            words = " ".join([name, *call.arguments])
            self.refuse(f"{words}: {refused}")
            return Answer(err=f"{name}: not simulated: {refused} (in: {words})\n", code=125)
        except Exception:  # a mistake in the simulation must not look like an answer of the machine
            self.refuse(f"{name} {call.arguments}: {traceback.format_exc()}")
            return Answer(err=f"{name}: the simulation failed\n", code=125)


class Switchboard:
    """Listens for the tools of many machines; a secret in each tool says whose it is."""

    def __init__(self) -> None:
        self._benches: dict[str, Bench] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # a blocked accept does not notice a plain close
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def install(self, bench: Bench, folder: Path, python: str) -> None:
        """Write the tools into the folder, as programs that reach this bench."""
        token = secrets.token_hex(16)
        self._benches[token] = bench
        for name in bench.tools:
            text = _CLIENT.format(python=python, token=token, name=name, port=self._port)
            write_program(folder / name, text)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            words = incoming.read().decode("utf-8", "surrogateescape").split("\0")
            token, name, folder, pid, uid, count, *rest = words
            bench = self._benches.get(token)
            if bench is None:
                return
            arguments, pairs = rest[: int(count) - 1], rest[int(count) - 1 :]
            environment = dict(pair.split("=", 1) for pair in pairs)
            call = Call(Path(folder), arguments, environment, int(pid), int(uid))
            answer = bench.answer(name, call)
            parts = "\0".join([str(answer.code), answer.out, answer.err, *answer.becomes])
            connection.sendall(parts.encode("utf-8", "surrogateescape"))


def write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def parse(
    arguments: Sequence[str], flags: Mapping[str, str], values: Mapping[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Words, and options by name; `flags` and `values` map each spelling to that name."""
    words: list[str] = []
    found: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--":
            words += rest
            break
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in flags:
            found.setdefault(flags[argument], [])
        elif argument in values:
            if not rest:
                raise Refused(f"option {argument} without its value")
            found.setdefault(values[argument], []).append(rest.pop(0))
        elif equals and name in values and name.startswith("--"):
            found.setdefault(values[name], []).append(value)
        elif argument[:2] in values and not argument.startswith("--"):
            found.setdefault(values[argument[:2]], []).append(argument[2:])
        else:
            raise Refused(f"option {argument}")
    return words, found


def write_constant(folder: Path, name: str, answers: Mapping[str, str], refused: Path) -> None:
    """`answers` maps the arguments, joined by blanks, to what is printed."""
    cases = "\n".join(
        f"{shlex.quote(arguments)}) printf '%s\\n' {shlex.quote(answer)} ;;"
        for arguments, answer in answers.items()
    )
    refused_path = shlex.quote(str(refused))
    write_program(folder / name, _SCRIPT.format(cases=cases, name=name, refused=refused_path))


def write_absent(folder: Path, name: str) -> None:
    """A tool that the machine lacks, and the host may have: it must not be reached by accident."""
    write_program(folder / name, f"#!/bin/sh\necho 'sh: 1: {name}: not found' >&2\nexit 127\n")
