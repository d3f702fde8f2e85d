"""The cache outside the checkout: each entry is complete or missing.

An entry is a folder with `content` and a `stamp`. It is built under another name and renamed; one
without a stamp is debris and is built again. Its name ends in a digest of its recipe, so a changed
recipe makes a new entry and leaves the old one to nodes that run on it."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.command import run


def cache_root() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fleetctl-lab"


def made(name: str, recipe: str, build: Callable[[Path], None]) -> Path:
    """The content of the entry `name`, built now unless it exists for this recipe."""
    entry = cache_root() / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    partial = Path(f"{entry}.partial")
    with locked(Path(f"{entry}.lock")):
        if not (entry / "stamp").exists():
            remove_tree(partial)
            (partial / "content").mkdir(parents=True)
            build(partial / "content")
            (partial / "stamp").touch()
            remove_tree(entry)
            partial.rename(entry)
    return entry / "content"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock until this process ends; two runs never build the same entry at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def remove_tree(path: Path) -> None:
    """Remove a folder, after unmounting everything in it: a killed debootstrap leaves /proc
    mounted."""
    unmount_below(path)
    if path.exists():
        shutil.rmtree(path)


def unmount_below(path: Path) -> None:
    for mount in reversed(mounts_below(path)):
        run("umount", "--lazy", mount)


def mounts_below(path: Path) -> list[Path]:
    """Mount points at or under `path`, outermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [Path(line.split()[4].replace("\\040", " ")) for line in lines]
    return [point for point in points if point.is_relative_to(path.resolve())]
