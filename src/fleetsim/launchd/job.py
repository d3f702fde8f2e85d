"""One loaded job: started, watched, kept alive and stopped as its plist defines."""

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
class JobContext:
    """What a domain provides to its jobs."""

    account: Account
    environment: Callable[[], Mapping[str, str]]
    """Called at each start, since `launchctl setenv` may have changed it."""
    program: Callable[[str], str]
    variant: Callable[[], Variant]
    started: Callable[[int], None]
    removed: Callable[["Job"], None]


@dataclass(slots=True)
class State:
    name: str = "not running"
    pid: int = 0
    runs: int = 0
    crashes: int = 0
    """Consecutive crashes, each within the throttle interval after its start."""
    last_exit: int | None = None
    """As in `Popen.returncode`: negative for a signal."""


class Job:
    """All methods are called with launchd's lock held; the watcher thread acquires it itself."""

    def __init__(
        self,
        definition: Definition,
        context: JobContext,
        changed: threading.Condition,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.definition = definition
        self.state = State()
        self._context = context
        self._changed = changed
        self._extra = extra or {}
        self._launched = float("-inf")
        self._unloading = False
        self._restart_requested = False

    def start(self) -> None:
        """Start it, unless it runs, as soon as the throttle allows."""
        if self.state.pid or self._unloading:
            return
        if self._context.variant().kickstart_waits:
            self._spawn_when_due()
        else:
            self._spawn()

    def restart(self) -> None:
        """Kill the process and start the loaded definition again, whatever its file contains
        now."""
        if not self.state.pid:
            self.start()
            return
        before = self.state.runs
        self._restart_requested = True
        self._terminate(self._context.variant().exit_seconds)
        self._changed.wait_for(
            lambda: (
                self.state.runs > before or self.state.name == "spawn scheduled" or self._unloading
            )
        )

    def stop(self) -> None:
        """`launchctl stop`: KeepAlive starts it again."""
        if self.state.pid:
            self._restart_requested = False
            self._terminate(self._context.variant().exit_seconds)

    def unload(self, seconds: float | None = None) -> None:
        """Unload: TERM, then KILL after the timeout. Returns immediately; the label is removed when
        the process has ended."""
        self._unloading = True
        self._changed.notify_all()
        if not self.state.pid:
            self._context.removed(self)
        elif self.state.name == "running":
            limit = self._context.variant().exit_seconds
            self._terminate(limit if seconds is None else min(limit, seconds))

    def signal(self, number: signal.Signals) -> None:
        if self.state.pid:
            os.kill(self.state.pid, number)

    @property
    def _throttle(self) -> float:
        doubled = float(self.definition.throttle << min(max(0, self.state.crashes - 1), 10))
        return min(doubled, _LONGEST_THROTTLE) * self._context.variant().pace

    def _spawn(self) -> None:
        state = self.state
        self._launched = time.monotonic()
        state.runs += 1
        try:
            process = self._start()
        except OSError:
            state.last_exit = BAD_CONFIGURATION
            state.crashes += 1
            self._after_run()
            return
        state.pid = process.pid
        self._context.started(process.pid)
        self._set_state("running")

        def watch() -> None:
            wait_without_reaping(process.pid)
            if not self.definition.abandons_group:
                # kill the rest of the group before the pid is reaped and can be reused
                signal_group(process.pid, signal.SIGKILL)
            code = process.wait()
            with self._changed:
                self._after_exit(code)

        threading.Thread(target=watch, daemon=True).start()

    def _start(self) -> "subprocess.Popen[bytes]":
        definition, context = self.definition, self._context
        with contextlib.ExitStack() as opened:
            stdout, stderr = (
                opened.enter_context(_open_for_append(path, context.account))
                for path in (definition.stdout or os.devnull, definition.stderr or os.devnull)
            )
            arguments = [context.program(definition.program), *definition.arguments[1:]]
            environment = {
                **context.environment(),
                **definition.environment,
                **self._extra,
                "XPC_SERVICE_NAME": definition.label,
            }
            streams = Streams(subprocess.DEVNULL, stdout.fileno(), stderr.fileno())
            folder = definition.working_directory or "/"
            return start_process(
                arguments, context.account, environment, folder, streams, umask=definition.umask
            )

    def _after_exit(self, code: int) -> None:
        state = self.state
        state.pid, state.last_exit = 0, code
        lived = time.monotonic() - self._launched
        soon = lived < self.definition.throttle * self._context.variant().pace
        state.crashes = state.crashes + 1 if code and soon else 0
        self._after_run()

    def _after_run(self) -> None:
        """Decide what follows after the process has ended or could not be started."""
        if self._unloading:
            self._set_state("exited")
            self._context.removed(self)
        elif not self.definition.path:  # an application, which has no plist
            self._context.removed(self)
        elif self.definition.keep_alive or self._restart_requested:
            self._restart_requested = False
            self._spawn_when_due()
        else:
            self._set_state("not running")

    def _spawn_when_due(self) -> None:
        seconds = self._launched + self._throttle - time.monotonic()
        if self.state.name == "spawn scheduled":
            return
        if seconds <= 0:
            self._spawn()
            return
        self._set_state("spawn scheduled")

        def spawn() -> None:
            with self._changed:
                if not self._changed.wait_for(self._is_spawn_obsolete, timeout=seconds):
                    self._spawn()

        threading.Thread(target=spawn, daemon=True).start()

    def _is_spawn_obsolete(self) -> bool:
        """Whether a scheduled start is no longer needed."""
        return self._unloading or bool(self.state.pid)

    def _terminate(self, seconds: float) -> None:
        pid = self.state.pid
        self._set_state("SIGTERMed")
        signal_group(pid, signal.SIGTERM)

        def kill() -> None:
            with self._changed:
                if not self._changed.wait_for(lambda: self.state.pid != pid, timeout=seconds):
                    self._set_state("SIGKILLed")
                    signal_group(pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()

    def _set_state(self, name: str) -> None:
        self.state.name = name
        self._changed.notify_all()


def _open_for_append(name: str, account: Account) -> IO[bytes]:
    """Open an output file, created if missing. PermissionError if the user could not open it."""
    path = Path(name)
    if not path.parent.exists():
        # launchd creates the folder for root, and then the user cannot enter it
        path.parent.mkdir(parents=True, mode=0o744 if os.getuid() == 0 else 0o444)
    is_new = not path.exists()
    if not account.may_reach(*((path.parent, 0o3) if is_new else (path, 0o2))):
        raise PermissionError(errno.EACCES, "Permission denied", name)
    file = path.open("ab")
    if is_new:
        account.own(path)
    return file
