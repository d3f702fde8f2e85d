"""One service: started, watched, restarted and stopped as its unit defines."""

import contextlib
import os
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fleetsim.processes import (
    JOINED,
    Account,
    signal_group,
    start_process,
    wait_without_reaping,
)
from fleetsim.systemd.journal import Journal, entry
from fleetsim.systemd.syntax import parse_environment_file
from fleetsim.systemd.unit import Unit, valid_variable

_OUTPUT_SECONDS = 1.0
_REASONS = {
    "exit-code": "the control process exited with error code.",
    "signal": "a fatal signal was delivered to the control process.",
    "timeout": "a timeout was exceeded.",
    "start-limit-hit": "start of the service was attempted too often.",
    "resources": "of unavailable resources or another system error.",
}


class StartFailed(Exception):
    """The unit could not be started; the text is systemctl's reason."""


@dataclass(slots=True)
class State:
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    main_pid: int = 0
    invocation: str = ""
    restarts: int = 0
    exec_pid: int = 0
    exec_code: int = 0
    exec_status: int = 0
    started: int = 0
    """Microseconds of the monotonic clock, as in systemd; likewise the two below."""
    exited: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a machine provides to its services."""

    account: Account
    environment: Mapping[str, str]
    journal: Journal
    boot: str


class Service:
    """All methods are called with the manager's lock held; the watcher thread acquires it
    itself."""

    def __init__(self, unit: Unit, context: ServiceContext, changed: threading.Condition) -> None:
        self.unit = unit
        self.state = State()
        self._context = context
        self._changed = changed
        self._starts: deque[float] = deque()
        self._stopping = False

    @property
    def _title(self) -> str:
        name, description = self.unit.name, self.unit.description
        return name if description == name else f"{name} - {description}"

    @property
    def idle(self) -> bool:
        return self.state.active in ("inactive", "failed")

    def start(self) -> None:
        if not self.idle and self.state.sub != "auto-restart":
            return
        self._stopping = False
        self._check_start_limit()
        self.state.restarts = 0
        self._spawn()

    def stop(self, *, seconds: float | None = None) -> None:
        """TERM, then KILL after the unit's stop timeout (or after `seconds`, if shorter)."""
        if self.idle:
            return
        self._log(f"Stopping {self._title}...")
        limit = self.unit.stop_seconds if seconds is None else min(seconds, self.unit.stop_seconds)
        self._stopping = True
        pid = self.state.main_pid
        if pid:
            self._set_state("deactivating", "stop-sigterm")
            signal_group(pid, signal.SIGTERM)
        self._changed.notify_all()
        if not self._changed.wait_for(lambda: self.idle, timeout=min(limit, threading.TIMEOUT_MAX)):
            self.state.result = "timeout"
            self._log(f"{self.unit.name}: State 'stop-sigterm' timed out. Killing.")
            signal_group(pid, signal.SIGKILL)
            self._changed.wait_for(lambda: self.idle)
        self._log(f"Stopped {self._title}.")

    def reset_failed(self) -> None:
        if self.state.active == "failed":
            self._set_state("inactive", "dead")
        self.state.restarts = 0
        self.state.result = "success"
        self._starts.clear()

    def _spawn(self) -> None:
        unit, state = self.unit, self.state
        state.invocation = uuid.uuid4().hex
        state.result = "success"
        try:
            environment = self._environment()
            process = start_process(
                unit.argv, self._context.account, environment, self._folder(), JOINED
            )
        except OSError as error:
            self._spawn_failed(error)
            return
        state.main_pid = state.exec_pid = process.pid
        state.started, state.exec_code, state.exec_status = _now(), 0, 0
        self._set_state("active", "running")
        self._log(f"Started {self._title}.")
        assert process.stdout is not None
        arguments = (process.stdout, self._recorder(process.pid))
        copier = threading.Thread(target=_copy_lines, args=arguments, daemon=True)
        copier.start()

        def watch() -> None:
            wait_without_reaping(process.pid)
            # kill the rest of the group before the pid is reaped and can be reused
            signal_group(process.pid, signal.SIGKILL)
            code = process.wait()
            # its last lines must be in the journal before its end becomes visible
            copier.join(timeout=_OUTPUT_SECONDS)
            with self._changed:
                self._after_exit(code)

        threading.Thread(target=watch, daemon=True).start()

    def _after_exit(self, code: int) -> None:
        state, unit = self.state, self.unit
        state.exited, state.main_pid = _now(), 0
        state.exec_code, state.exec_status = (2, -code) if code < 0 else (1, code)
        clean = code in (0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP, -signal.SIGPIPE)
        if not clean and state.result == "success":
            state.result = "signal" if code < 0 else "exit-code"
        if not clean:
            how = f"killed, status={-code}" if code < 0 else f"exited, status={code}"
            self._log(f"{unit.name}: Main process exited, code={how}")
            self._log(f"{unit.name}: Failed with result '{state.result}'.")
        wanted = unit.restart == "always" or (unit.restart == "on-failure" and not clean)
        if wanted and not self._stopping:
            self._schedule_restart()
        else:
            self._set_state("inactive" if state.result == "success" else "failed", "")

    def _schedule_restart(self) -> None:
        self._set_state("activating", "auto-restart")

        def restart() -> None:
            with self._changed:
                delay = self.unit.restart_seconds
                if self._changed.wait_for(lambda: self._stopping, timeout=delay):
                    self._set_state("inactive", "dead")
                    return
                if self.state.sub != "auto-restart":
                    return
                self.state.restarts += 1
                count = self.state.restarts
                self._log(
                    f"{self.unit.name}: Scheduled restart job, restart counter is at {count}."
                )
                with contextlib.suppress(StartFailed):  # recorded in the state
                    self._check_start_limit()
                    self._spawn()

        threading.Thread(target=restart, daemon=True).start()

    def _check_start_limit(self) -> None:
        now = time.monotonic()
        while self._starts and self._starts[0] < now - self.unit.start_limit_seconds:
            self._starts.popleft()
        if len(self._starts) >= self.unit.start_limit_burst:
            if self.state.result == "success":
                self.state.result = "start-limit-hit"
            self._set_state("failed", "failed")
            self._log(f"{self.unit.name}: Start request repeated too quickly.")
            raise StartFailed(_REASONS[self.state.result])
        self._starts.append(now)

    def _environment(self) -> dict[str, str]:
        found = {**self._context.environment, **self.unit.environment}
        for file in self.unit.environment_files:
            try:
                text = Path(file.path).read_text(encoding="utf-8", errors="surrogateescape")
            except OSError:
                if file.optional:
                    continue
                raise
            for name, value in parse_environment_file(text):
                if valid_variable(name, value):
                    found[name] = value
        found["INVOCATION_ID"] = self.state.invocation
        return {name: value for name, value in found.items() if name not in self.unit.unset}

    def _folder(self) -> str:
        home = self._context.environment["HOME"]
        return self.unit.working_directory.lstrip("!-").replace("~", home)

    def _spawn_failed(self, error: OSError) -> None:
        unit, state = self.unit, self.state
        missing_file = error.filename != unit.argv[0]
        state.result = "resources" if missing_file else "exit-code"
        state.exec_code, state.exec_status = (0, 0) if missing_file else (1, 203)
        self._log(f"{unit.name}: {error}")
        self._log(f"{unit.name}: Failed with result '{state.result}'.")
        if unit.restart in ("always", "on-failure"):
            self._schedule_restart()
        else:
            self._set_state("failed", "failed")
        # a command that cannot be executed counts as started, since systemd has forked
        if missing_file:
            raise StartFailed(_REASONS["resources"])

    def _set_state(self, active: str, sub: str) -> None:
        self.state.active = active
        self.state.sub = sub or ("failed" if active == "failed" else "dead")
        self.state.changed = _now()
        self._changed.notify_all()

    def _log(self, text: str) -> None:
        context, invocation = self._context, self.state.invocation
        context.journal.write(entry(context.boot, self.unit.name, invocation, text, 1))

    def _recorder(self, pid: int) -> Callable[[str], None]:
        context, name, invocation = self._context, self.unit.name, self.state.invocation
        program = os.path.basename(self.unit.argv[0])

        def record(text: str) -> None:
            context.journal.write(entry(context.boot, name, invocation, text, pid, program))

        return record


def _copy_lines(source: IO[bytes], record: Callable[[str], None]) -> None:
    with source:
        for line in source:
            record(line.decode("utf-8", "replace").rstrip("\n"))


def _now() -> int:
    return time.monotonic_ns() // 1000
