"""What launchd answers when it does not do what it was asked: a number, and its text."""

from collections.abc import Mapping

TEXTS: Mapping[int, str] = {
    1: "Operation not permitted",
    3: "No such process",
    5: "Input/output error",
    36: "Operation now in progress",
    37: "Operation already in progress",
    112: "Could not find specified domain",
    113: "Could not find specified service",
    119: "Service is disabled",
    122: "Path had bad ownership/permissions",
    125: "Domain does not support specified action",
    134: "Service cannot load in requested session",
}


class LaunchError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"{code}: {TEXTS[code]}")
        self.code = code
