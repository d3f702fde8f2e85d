"""How a simulated tool calls the process that runs its machine, and how it parses its options.

The installed tool is a few lines of Python that send the arguments over loopback and print the
answer. Scripts call tools often, so this client must start fast."""

import getopt
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
code, out, err, *exec_argv = answer.split(b"\\0")
os.write(1, out) if out else None
os.write(2, err) if err else None
os.execvp(exec_argv[0], exec_argv) if exec_argv else os._exit(int(code or 125))
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
    """A call of a tool: arguments, and the calling process."""

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
    exec_argv: tuple[str, ...] = ()
    """A command that replaces the tool's process (exec)."""


Tool = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of one machine, and where refusals are recorded."""

    tools: Mapping[str, Tool]
    refuse: Callable[[str], None]

    def answer(self, name: str, call: Call) -> Answer:
        try:
            return self.tools[name](call)
        except Refused as refused:
            words = " ".join([name, *call.arguments])
            self.refuse(f"{words}: {refused}")
            return Answer(err=f"{name}: not simulated: {refused} (in: {words})\n", code=125)
        except Exception:  # a bug of the simulation must not look like an answer of the machine
            self.refuse(f"{name} {call.arguments}: {traceback.format_exc()}")
            return Answer(err=f"{name}: the simulation failed\n", code=125)


class ToolServer:
    """Serves the tools of many machines; a token in each tool identifies its machine."""

    def __init__(self) -> None:
        self._toolsets: dict[str, Toolset] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # close alone does not wake a blocked accept
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def install(self, toolset: Toolset, folder: Path, python: str) -> None:
        """Write the tools into the folder, as programs that call this server."""
        token = secrets.token_hex(16)
        self._toolsets[token] = toolset
        for name in toolset.tools:
            text = _CLIENT.format(python=python, token=token, name=name, port=self._port)
            write_program(folder / name, text)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_call, args=(connection,), daemon=True).start()

    def _serve_call(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            words = incoming.read().decode("utf-8", "surrogateescape").split("\0")
            token, name, folder, pid, uid, count, *rest = words
            toolset = self._toolsets.get(token)
            if toolset is None:
                return
            arguments, pairs = rest[: int(count) - 1], rest[int(count) - 1 :]
            environment = dict(pair.split("=", 1) for pair in pairs)
            call = Call(Path(folder), arguments, environment, int(pid), int(uid))
            answer = toolset.answer(name, call)
            parts = "\0".join([str(answer.code), answer.out, answer.err, *answer.exec_argv])
            connection.sendall(parts.encode("utf-8", "surrogateescape"))


def write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def parse_options(
    arguments: Sequence[str], flags: Mapping[str, str], values: Mapping[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Split arguments into words and options by name; `flags` and `values` map each spelling of an
    option to its name. Refuses any other option."""
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


def parse_short_options(
    arguments: Sequence[str], short: str, name: str
) -> tuple[list[tuple[str, str]], list[str]]:
    """Parse options like BSD's getopt: clustered letters, no options after the first word."""
    try:
        return getopt.getopt(list(arguments), short)
    except getopt.GetoptError as error:
        raise Refused(f"{name}: {error}") from None


def write_constant(folder: Path, name: str, answers: Mapping[str, str], refused: Path) -> None:
    """Write a tool with a fixed answer: a shell script. `answers` maps the arguments, joined by
    blanks, to the output."""
    cases = "\n".join(
        f"{shlex.quote(arguments)}) printf '%s\\n' {shlex.quote(answer)} ;;"
        for arguments, answer in answers.items()
    )
    refused_path = shlex.quote(str(refused))
    write_program(folder / name, _SCRIPT.format(cases=cases, name=name, refused=refused_path))


def write_absent(folder: Path, name: str) -> None:
    """Write a tool that fails as if missing, so that the host's tool of that name is not found."""
    write_program(folder / name, f"#!/bin/sh\necho 'sh: 1: {name}: not found' >&2\nexit 127\n")
