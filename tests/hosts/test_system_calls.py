"""What the script of a check asks of the kernel, as strace sees it from outside of the node."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hosts.project import LabProject
from tests.lab.command import wait_until
from tests.lab.fixture_types import Boot
from tests.lab.lab import Lab
from tests.lab.node import Node

pytestmark = [pytest.mark.host, pytest.mark.ollama]

CALLS = "%file,%process,ftruncate,fallocate,fchmod,fchown,fsetxattr,fremovexattr"
CHANGING = re.compile(
    r"(creat|mkdir|mkdirat|mknod|mknodat|rename|renameat|renameat2|unlink|unlinkat|rmdir|link|linkat"
    r"|symlink|symlinkat|chmod|fchmod|fchmodat|fchmodat2|chown|lchown|fchown|fchownat|truncate"
    r"|ftruncate|fallocate|utime|utimes|utimensat|futimesat|l?setxattr|fsetxattr|l?removexattr"
    r"|fremovexattr|mount|umount2|pivot_root|chroot|swapon)\("
)
OPENING = re.compile(r'open(?:at|at2)?\((?:[^,"]*, )?"(?P<path>[^"]*)", .*?O_(?P<how>WRONLY|RDWR)')
CREATING = re.compile(r"open(?:at|at2)?\(.*O_(CREAT|TRUNC|APPEND|TMPFILE)")
STARTED = re.compile(r"(?:<\.\.\. )?(?:clone|clone3|fork|vfork)\b.* = \d+ /\* (\d+) in strace's")
NO_FILES = ("/dev/null", "/dev/tty")  # sudo asks for the latter, in vain
OUR_SHELL = 'execve("/bin/sh", ["/bin/sh", "-s"]'


@contextmanager
def traced(node: Node, log: Path) -> Iterator[None]:
    """Everything that starts from the node's sshd while this lasts."""
    pids = [pid for pid in node.cgroup.pids() if name_of(pid) == "sshd"]
    assert pids, "no sshd runs on the node"
    follow = [f"--attach={pid}" for pid in pids]
    said = log.with_suffix(".err")
    with said.open("w") as errors:
        strace = subprocess.Popen(
            ["strace", "-f", "-qq", "--decode-pids=pidns", f"--trace={CALLS}", *follow, "-o", log],
            stderr=errors,
        )
    try:
        wait_until(lambda: all(map(is_traced, pids)), "strace does not attach", said)
        yield
    finally:
        strace.terminate()
        strace.wait()


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


def is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def of_the_script(log: str) -> list[str]:
    """The calls of our shell and of all that it starts, directly or not.

    What a child does may be told before its parent was told that there is one.
    """
    told = [(line.split()[0], line.partition(" ")[2].strip()) for line in log.splitlines()]
    start = next(at for at, (_, call) in enumerate(told) if call.startswith(OUR_SHELL))
    shell = told[start][0]
    children: dict[str, set[str]] = {}
    for pid, call in told[start:]:
        if started := STARTED.match(call):
            children.setdefault(pid, set()).add(started[1])
    ours, fresh = set[str](), {shell}
    while fresh:
        ours |= fresh
        fresh = {child for pid in fresh for child in children.get(pid, ())} - ours
    return [call for pid, call in told[start:] if pid in ours]


def writes(call: str) -> bool:
    if opened := OPENING.match(call):
        return opened["path"] not in NO_FILES
    return bool(CHANGING.match(call) or CREATING.match(call))


@pytest.mark.parametrize("kinds", ["user", "installer", "installer+sudo-absent"])
def test_the_script_opens_nothing_for_writing_and_changes_nothing(
    kinds: str, boot: Boot, lab: Lab, tmp_path: Path
) -> None:
    node = boot(kinds)
    project = LabProject(lab, tmp_path)
    project.add(node)
    log = tmp_path / "calls"
    with traced(node, log):
        project("check").exits(3)
    calls = of_the_script(log.read_text(errors="replace"))
    programs = {Path(name).name for name in re.findall(r'execve\("([^"]+)"', "\n".join(calls))}
    assert {"sh", "systemctl", "id", "uname", "ip", "cat"} <= programs
    assert [call for call in calls if writes(call)] == []


@pytest.mark.parametrize(
    "call",
    [
        'openat(AT_FDCWD, "/etc/x", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3',
        'open("/etc/x", O_RDWR) = 3',
        'openat(AT_FDCWD, "/etc/x", O_RDONLY|O_CREAT, 0666) = 3',
        'unlink("/etc/x") = 0',
        'renameat2(AT_FDCWD, "a", AT_FDCWD, "b", 0) = 0',
        "ftruncate(3, 0) = 0",
    ],
)
def test_the_look_at_calls_can_fail(call: str) -> None:
    assert writes(call)
    assert not writes('openat(AT_FDCWD, "/dev/null", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3')
    assert not writes('openat(AT_FDCWD, "/etc/x", O_RDONLY|O_CLOEXEC) = 3')
