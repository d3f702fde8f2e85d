"""The project on the controller: its inventory, and files that are written outside of a run."""

import os
from pathlib import Path

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import Problem, did_you_mean, find, load
from fleetctl.model.fleet import Fleet, Node
from fleetctl.ui import console


def load_fleet(file: Path | None) -> Fleet:
    return load_with_warnings(file)[0]


def load_with_warnings(file: Path | None) -> tuple[Fleet, list[Problem]]:
    """The inventory; its warnings are printed."""
    fleet, warnings = load(find(file))
    for problem in warnings:
        console.talk(console.printable(problem.line(str(fleet.file), kind="warning: ")))
    return fleet, warnings


def one_node(fleet: Fleet, name: str) -> Node:
    """A node that fleetctl manages, by its name."""
    node = fleet.nodes.get(name)
    if node is None or node.ssh is None:
        what = "is only routed to, not managed" if node else f"is not in {fleet.file}"
        hint = None if node else did_you_mean(name, fleet.nodes)
        raise FleetError(f"{name} {what}", hint=hint, exit_code=Exit.USAGE)
    return node


def make_state(folder: Path) -> None:
    """Creates fleetctl's own folder, readable by its owner only and ignored by git.

    Later runs keep `.gitignore` like any other file: see playbooks/apply.yaml.
    """
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700)
    (folder / ".gitignore").write_text("*\n")


def write_whole(file: Path, data: bytes) -> None:
    """Writes the file in one rename, keeping owner and mode of the old one.

    Behind a symbolic link its target is replaced, not the link.
    """
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    before = target.stat() if target.exists() else None
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if before else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if before:
                now = os.fstat(descriptor)
                if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, before.st_mode & 0o7777)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
