"""Find an inventory and load it: a Fleet with its warnings, or every error at once."""

import os
import stat
from pathlib import Path

from pydantic import ValidationError

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import checks, document
from fleetctl.inventory.problems import InvalidFile, Problem, validation_problems
from fleetctl.inventory.resolve import resolve
from fleetctl.inventory.schema import InventorySection
from fleetctl.model.fleet import Fleet

DEFAULT_FILES = (Path("inventory/fleet.yaml"), Path("fleet.yaml"))


def find(given: Path | None) -> Path:
    """The file given by option or FLEETCTL_INVENTORY, or the first default that exists."""
    if file := given or default_file():
        return file
    searched = " and ".join(map(str, DEFAULT_FILES))
    raise FleetError(
        f"no inventory found (looked for {searched})",
        hint="create one with fleetctl init, or name yours with -i FILE",
        exit_code=Exit.USAGE,
    )


def default_file() -> Path | None:
    """The inventory used when none is named: FLEETCTL_INVENTORY, or the one of this folder."""
    if given := os.environ.get("FLEETCTL_INVENTORY"):
        return Path(given)
    return next((file for file in DEFAULT_FILES if file.exists()), None)


def load(file: Path) -> tuple[Fleet, list[Problem]]:
    """The fleet of a file, and its warnings; raises InvalidFile with every error."""
    return parse(read_bytes(file), file)


def parse(data: bytes, file: Path) -> tuple[Fleet, list[Problem]]:
    """As `load`, for a file with this content.

    All errors of form and reference are reported together; conflicts need a resolved fleet, so
    they are reported once the rest is valid.
    """
    read = document.read(data, str(file))
    problems = [*read.problems, *checks.references(read.value)]
    try:
        inventory = InventorySection.model_validate(read.value)
    except ValidationError as error:
        problems += validation_problems(error, read.value, InventorySection)
    if problems:
        raise InvalidFile(str(file), document.located(problems, data))
    fleet = resolve(inventory, file)
    if conflicts := list(checks.conflicts(fleet)):
        raise InvalidFile(str(file), document.located(conflicts, data))
    warnings = list(checks.warnings(inventory, fleet))
    return fleet, document.located(warnings, data) if warnings else []


def read_bytes(file: Path) -> bytes:
    """The content of an inventory; one byte more than allowed, so that parsing reports the size."""
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
        hint="name another with -i FILE, or create one with fleetctl init",
        exit_code=Exit.USAGE,
    )
