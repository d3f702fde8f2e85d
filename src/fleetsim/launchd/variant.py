"""launchd's error codes, and one switch for each point in which macOS releases differ or sources disagree.

docs/macos.md lists which of these have been observed on a real Mac."""

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Variant:
    macos: str
    """As `sw_vers --productVersion` says it."""
    build: str
    kernel: str

    no_gui: int = 125
    """Of everything in a gui domain that is not there: 125, 112 or 5. With 0, bootstrap exits 0
    and does nothing, and the rest says 112."""
    already_loaded: int = 5
    """Of bootstrap, while the label is loaded or draining: 5 or 37."""
    disabled: int = 5
    """Of bootstrap: 5 or 119."""
    wrong_session: int = 5
    """Of bootstrap: 5 or 134."""
    bad_mode: int = 5
    """Of bootstrap, with a plist that others may write: 5 or 122."""
    kickstart_waits: bool = True
    """Whether kickstart too keeps to the throttle; one source says that it does not."""
    bootout: int = 0
    """Of bootout, while the job drains: 0 or 36."""
    bootout_wait: bool = False
    """Whether bootout knows --wait; where it does not, it exits 64 and stops nothing."""
    bad_request: bool = False
    """Whether `Bad request.` comes before `Could not find service`."""
    full_header: bool = True
    """Whether `print` begins with the domain and the label, or with the label alone."""
    loads_twice: bool = False
    """Whether a login at the screen loads an agent that is loaded in user/UID already."""
    stays_idle: bool = False
    """The rare job that is loaded and not started, KeepAlive or not, until it is kickstarted."""

    pace: float = 0.05
    """How long launchd's seconds are; its throttle of ten would make tests slow."""
    exit_seconds: float = 1.0
    """Between TERM and KILL; launchd waits five."""


RELEASES: Mapping[str, Variant] = {
    "14": Variant(
        "14.7.6",
        "23H626",
        "23.6.0",
        disabled=119,
        wrong_session=134,
        bad_mode=122,
        full_header=False,
    ),
    "15": Variant("15.7.1", "24G231", "24.6.0"),
    "26": Variant("26.1", "25B78", "25.1.0", no_gui=112, bad_request=True, bootout_wait=True),
}
