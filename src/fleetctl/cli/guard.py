"""Every way in which a command can end, as an exit code and a message; no exception gets past."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import shell_complete

from fleetctl.errors import Exit, FleetError
from fleetctl.ui import console

PROGRAM = "fleetctl"
COMPLETE = "_FLEETCTL_COMPLETE"
"""The variable by which a shell asks for completions."""


class _Terminated(BaseException):
    """SIGTERM, which unwinds as Ctrl-C does."""


def run(command: click.Command, arguments: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _terminate)
    # Else pydantic searches all installed packages for code to load into our validation.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        code = _run(command, list(arguments))
        console.flush()
    except BaseException as error:
        code = _ended_by(error, as_json="--json" in arguments, debug="--debug" in arguments)
    return int(code)


def leave(code: int) -> NoReturn:
    """Ends the process without the interpreter's clean-up, which would take a tenth of a second.

    Buffers are flushed first; output that cannot be written is dropped without a message.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(command: click.Command, arguments: list[str]) -> int:
    """As click's own `main`, which would exit by itself on a closed pipe."""
    if asked := os.environ.get(COMPLETE):
        return shell_complete(command, {}, PROGRAM, COMPLETE, asked)
    try:
        with command.make_context(PROGRAM, arguments) as context:
            return command.invoke(context) or Exit.OK
    except click.exceptions.Exit as done:
        return done.exit_code


def _terminate(_signal: int, _frame: object) -> NoReturn:
    raise _Terminated


def _ended_by(error: BaseException, *, as_json: bool, debug: bool) -> Exit:
    match error:
        case click.exceptions.NoArgsIsHelpError():
            console.talk(error.format_message())
            return Exit.USAGE
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else PROGRAM
            wrong = FleetError(error.format_message(), hint=f"{path} --help", exit_code=Exit.USAGE)
            return _failed(wrong, as_json)
        case FleetError():
            return _failed(error, as_json)
        case KeyboardInterrupt() | click.Abort():
            console.talk("interrupted")
            return Exit.INTERRUPTED
        case _Terminated():
            console.talk("terminated")
            return Exit.TERMINATED
        case OSError(errno=errno.EPIPE):
            return Exit.PIPE_CLOSED
        case OSError():
            what = error.filename or "the result cannot be written"
            console.complain("error", f"{what}: {error.strerror or error}")
            return Exit.FAILED
    return _bug(error, debug)


def _failed(error: FleetError, as_json: bool) -> Exit:
    for line in error.details():
        console.talk(console.printable(line))
    console.complain("error", error.message, error.hint)
    if as_json:
        console.document({"error": error.document()})
    return error.exit_code


def _bug(error: BaseException, debug: bool) -> Exit:
    import traceback

    if debug:
        console.talk("".join(traceback.format_exception(error)))
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    where = f"{Path(frame.f_code.co_filename).name}:{line}"
    console.complain(
        "error",
        f"this is a bug in fleetctl: {type(error).__name__}: {error} ({where})",
        "run it again with --debug and report what it prints",
    )
    return Exit.BUG
