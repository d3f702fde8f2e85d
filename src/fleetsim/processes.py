"""Starts processes as the user of a simulated machine, and finds them again."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Account:
    """The user that processes of a machine run as: the current user, or `nobody` when that is
    root."""

    uid: int
    gid: int

    @classmethod
    def unprivileged(cls) -> "Account":
        if os.getuid() == 0:
            return cls(_NOBODY, _NOBODY)
        return cls(os.getuid(), os.getgid())

    def own(self, path: Path) -> None:
        if os.getuid() == 0:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def own_all(self, folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            self.own(path)

    def may_reach(self, path: Path, need: int = 0o5) -> bool:
        """Whether this user can enter every parent folder and has the permissions `need` on the
        path itself (by default: read and enter)."""
        if self.uid == 0:
            return True
        return all(
            _grants(part, self, need if part == path else 0o1) for part in (path, *path.parents)
        )


def _grants(path: Path, account: Account, need: int) -> bool:
    status = path.stat()
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    return (status.st_mode >> shift) & need == need


@dataclass(frozen=True, slots=True)
class Streams:
    """Arguments of `Popen`."""

    stdin: int
    stdout: int
    stderr: int


PIPES = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
JOINED = Streams(subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT)
"""No input; stdout and stderr joined."""


def start_process(
    argv: Sequence[str],
    account: Account,
    environment: Mapping[str, str],
    folder: str,
    streams: Streams = PIPES,
    *,
    umask: int = -1,
) -> "subprocess.Popen[bytes]":
    """Start it in a new session, so that it and its children can be signalled as a group."""
    root = os.getuid() == 0
    return subprocess.Popen(
        argv,
        stdin=streams.stdin,
        stdout=streams.stdout,
        stderr=streams.stderr,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        umask=umask,
        user=account.uid if root else None,
        group=account.gid if root else None,
        extra_groups=[] if root else None,
    )


def signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def wait_without_reaping(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def processes_with(environment: Mapping[str, str]) -> Iterator[int]:
    """Pids of the processes that have all of these variables in their environment. Linux only."""
    wanted = {f"{name}={value}".encode() for name, value in environment.items()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                yield int(folder.name)
        except OSError:
            continue  # ended in the meantime, or not readable for us


def interpreter_for(account: Account) -> str:
    """A Python that this user can run: ours, or the system's if ours is in an unreadable home."""
    candidates = (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3")
    for candidate in candidates:
        path = Path(candidate).resolve()
        if path.exists() and account.may_reach(path):
            return str(path)
    raise RuntimeError(f"user {account.uid} can run none of {', '.join(candidates)}")


def parent_of(pid: int) -> int:
    return _status_field(pid, 1)


def session_of(pid: int) -> int:
    return _status_field(pid, 3)


def _status_field(pid: int, number: int) -> int:
    """A field of /proc/PID/stat, counted from the state (the field after the name); 0 if the
    process has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[number])
