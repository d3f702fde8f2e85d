"""One loaded job: started, watched, kept alive and stopped as its plist says."""

import contextlib
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fleetsim.launchd.definition import Definition
from fleetsim.launchd.variant import Variant
from fleetsim.processes import (
    Account,
    Streams,
    signal_group,
    start_process,
    wait_without_reaping,
)

BAD_CONFIGURATION = 78
_LONGEST_THROTTLE = 1200


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a job gets from its domain."""

    account: Account
    environment: Callable[[], Mapping[str, str]]
    """Asked at each start: it may have been changed by `launchctl setenv`."""
    program: Callable[[str], str]
    variant: Callable[[], Variant]
    started: Callable[[int], None]
    gone: Callable[["Job"], None]


@dataclass(slots=True)
class State:
    name: str = "not running"
    pid: int = 0
    runs: int = 0
    crashes: int = 0
    """In a row, each within the throttle of its start."""
    last_exit: int | None = None
    """As Popen has it: negative is a signal."""


class Job:
    """All methods are called with launchd's lock held; the watching thread takes it itself."""

    def __init__(
        self,
        definition: Definition,
        around: Surroundings,
        changed: threading.Condition,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.definition = definition
        self.state = State()
        self._around = around
        self._changed = changed
        self._extra = extra or {}
        self._launched = float("-inf")
        self._leaving = False
        self._wanted = False

    def start(self) -> None:
        """Unless it runs; not sooner than the throttle allows."""
        if self.state.pid or self._leaving:
            return
        if self._around.variant().kickstart_waits:
            self._spawn_when_due()
        else:
            self._spawn()

    def restart(self) -> None:
        """Kill what runs and start the definition that is loaded, whatever its file says now."""
        if not self.state.pid:
            self.start()
            return
        before = self.state.runs
        self._wanted = True
        self._terminate(self._around.variant().exit_seconds)
        self._changed.wait_for(
            lambda: (
                self.state.runs > before or self.state.name == "spawn scheduled" or self._leaving
            )
        )

    def stop(self) -> None:
        """As `launchctl stop`: it is kept alive all the same."""
        if self.state.pid:
            self._wanted = False
            self._terminate(self._around.variant().exit_seconds)

    def leave(self, seconds: float | None = None) -> None:
        """TERM, and KILL when its time is over; the label is gone when the process is. Returns at
        once."""
        self._leaving = True
        self._changed.notify_all()
        if not self.state.pid:
            self._around.gone(self)
        elif self.state.name == "running":
            limit = self._around.variant().exit_seconds
            self._terminate(limit if seconds is None else min(limit, seconds))

    def signal(self, number: signal.Signals) -> None:
        if self.state.pid:
            os.kill(self.state.pid, number)

    @property
    def _throttle(self) -> float:
        doubled = float(self.definition.throttle << min(max(0, self.state.crashes - 1), 10))
        return min(doubled, _LONGEST_THROTTLE) * self._around.variant().pace

    def _spawn(self) -> None:
        state = self.state
        self._launched = time.monotonic()
        state.runs += 1
        try:
            process = self._start()
        except OSError:
            state.last_exit = BAD_CONFIGURATION
            state.crashes += 1
            self._rest()
            return
        state.pid = process.pid
        self._around.started(process.pid)
        self._enter("running")

        def watch() -> None:
            wait_without_reaping(process.pid)
            if not self.definition.abandons_group:
                # what is left of the group goes while its number still is ours
                signal_group(process.pid, signal.SIGKILL)
            code = process.wait()
            with self._changed:
                self._after_exit(code)

        threading.Thread(target=watch, daemon=True).start()

    def _start(self) -> "subprocess.Popen[bytes]":
        definition, around = self.definition, self._around
        with contextlib.ExitStack() as opened:
            stdout, stderr = (
                opened.enter_context(_appending(path, around.account))
                for path in (definition.stdout or os.devnull, definition.stderr or os.devnull)
            )
            arguments = [around.program(definition.program), *definition.arguments[1:]]
            environment = {
                **around.environment(),
                **definition.environment,
                **self._extra,
                "XPC_SERVICE_NAME": definition.label,
            }
            streams = Streams(subprocess.DEVNULL, stdout.fileno(), stderr.fileno())
            folder = definition.working_directory or "/"
            return start_process(
                arguments, around.account, environment, folder, streams, umask=definition.umask
            )

    def _after_exit(self, code: int) -> None:
        state = self.state
        state.pid, state.last_exit = 0, code
        lived = time.monotonic() - self._launched
        soon = lived < self.definition.throttle * self._around.variant().pace
        state.crashes = state.crashes + 1 if code and soon else 0
        self._rest()

    def _rest(self) -> None:
        """After a process has ended, or could not be started."""
        if self._leaving:
            self._enter("exited")
            self._around.gone(self)
        elif not self.definition.path:  # an application, which nothing describes but its process
            self._around.gone(self)
        elif self.definition.keep_alive or self._wanted:
            self._wanted = False
            self._spawn_when_due()
        else:
            self._enter("not running")

    def _spawn_when_due(self) -> None:
        seconds = self._launched + self._throttle - time.monotonic()
        if self.state.name == "spawn scheduled":
            return
        if seconds <= 0:
            self._spawn()
            return
        self._enter("spawn scheduled")

        def spawn() -> None:
            with self._changed:
                if not self._changed.wait_for(self._is_settled, timeout=seconds):
                    self._spawn()

        threading.Thread(target=spawn, daemon=True).start()

    def _is_settled(self) -> bool:
        """Whether what was scheduled is not to be any more."""
        return self._leaving or bool(self.state.pid)

    def _terminate(self, seconds: float) -> None:
        pid = self.state.pid
        self._enter("SIGTERMed")
        signal_group(pid, signal.SIGTERM)

        def kill() -> None:
            with self._changed:
                if not self._changed.wait_for(lambda: self.state.pid != pid, timeout=seconds):
                    self._enter("SIGKILLed")
                    signal_group(pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()

    def _enter(self, name: str) -> None:
        self.state.name = name
        self._changed.notify_all()


def _appending(name: str, account: Account) -> IO[bytes]:
    """A file for output, made if it is missing; never one that the user could not open."""
    path = Path(name)
    if not path.parent.exists():
        # launchd makes it for root, and then the user cannot get in
        path.parent.mkdir(parents=True, mode=0o744 if os.getuid() == 0 else 0o444)
    is_new = not path.exists()
    if not account.may_reach(*((path.parent, 0o3) if is_new else (path, 0o2))):
        raise PermissionError(errno.EACCES, "Permission denied", name)
    file = path.open("ab")
    if is_new:
        account.own(path)
    return file
