"""From a YAML file to a Fleet, or to a list of everything that is wrong with the file.

The names below are what other packages use, besides the modules `document` (strict YAML),
`reference` (the commented example) and `ssh_config`. Each name is imported on first use, since
pydantic takes a tenth of a second, which help, completion and `docs` should not pay.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetctl.inventory.edit import Edited, with_node
    from fleetctl.inventory.loading import (
        DEFAULT_FILES,
        default_file,
        find,
        load,
        parse,
        read_bytes,
    )
    from fleetctl.inventory.problems import (
        InvalidFile,
        Problem,
        did_you_mean,
        validation_problems,
    )
    from fleetctl.inventory.schema import json_schema
    from fleetctl.inventory.selection import select

__all__ = [
    "DEFAULT_FILES",
    "Edited",
    "InvalidFile",
    "Problem",
    "default_file",
    "did_you_mean",
    "find",
    "json_schema",
    "load",
    "parse",
    "read_bytes",
    "select",
    "validation_problems",
    "with_node",
]

_MODULES = {
    "edit": ("Edited", "with_node"),
    "loading": ("DEFAULT_FILES", "default_file", "find", "load", "parse", "read_bytes"),
    "problems": ("InvalidFile", "Problem", "did_you_mean", "validation_problems"),
    "schema": ("json_schema",),
    "selection": ("select",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
