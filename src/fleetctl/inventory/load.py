"""Finding an inventory, and loading it: a Fleet with its warnings, or every error at once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pydantic import ValidationError

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import checks, document, messages, names
from fleetctl.inventory.problems import InvalidFile, Problem
from fleetctl.inventory.remains import remains
from fleetctl.inventory.resolve import resolve
from fleetctl.inventory.schema import InventorySection
from fleetctl.model.fleet import Fleet

DEFAULT_PLACES = (Path("inventory/fleet.yaml"), Path("fleet.yaml"))


def find(given: Path | None) -> Path:
    """The file that was named, by option or FLEETCTL_INVENTORY, or the first of the usual ones."""
    if file := given or usual():
        return file
    looked = " and ".join(map(str, DEFAULT_PLACES))
    raise FleetError(
        f"no inventory here (looked for {looked})",
        hint="fleetctl init writes one; or name yours with -i FILE",
        exit_code=Exit.USAGE,
    )


def usual() -> Path | None:
    """The inventory of this folder when none is named."""
    return next((place for place in DEFAULT_PLACES if place.exists()), None)


def load(file: Path) -> tuple[Fleet, list[Problem]]:
    """The fleet of a file, and what is doubtful about it."""
    return parse(read_bytes(file), file)


def parse(data: bytes, file: Path) -> tuple[Fleet, list[Problem]]:
    """The fleet that a file has when these are its bytes."""
    read = document.read(data, str(file))
    problems = [*read.problems, *names.problems(read.value)]
    try:
        inventory = InventorySection.model_validate(read.value)
    except ValidationError as error:
        problems += messages.problems(error, read.value, InventorySection)
    if problems:
        if rest := remains(read.value, problems):
            problems += checks.conflicts(resolve(rest, file))
        raise InvalidFile(str(file), document.located(problems, data))
    fleet = resolve(inventory, file)
    if conflicts := list(checks.conflicts(fleet)):
        raise InvalidFile(str(file), document.located(conflicts, data))
    doubts = list(checks.doubts(inventory, fleet))
    return fleet, document.located(doubts, data) if doubts else []


def read_bytes(file: Path) -> bytes:
    """At most a byte more than a file may have; parsing it says so."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise _unusable(file, "is not a regular file")
        with file.open("rb") as stream:
            return stream.read(document.MAX_BYTES + 1)
    except OSError as error:
        raise _unusable(file, f"cannot be read: {os.strerror(error.errno or 0)}") from None
    except ValueError:
        raise _unusable(file, "is not a file name") from None


def _unusable(file: Path, why: str) -> FleetError:
    return FleetError(
        f"the inventory {str(file)!r} {why}",
        hint="name another with -i FILE, or write one with fleetctl init",
        exit_code=Exit.USAGE,
    )
