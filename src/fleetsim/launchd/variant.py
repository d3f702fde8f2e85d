"""launchd's error codes, and a switch for each point where macOS releases or sources differ.

docs/macos.md lists which of them have been observed on a real Mac."""

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
    """The output of `sw_vers --productVersion`."""
    build: str
    kernel: str

    no_gui: int = 125
    """Error of every verb in a gui domain that does not exist: 125, 112 or 5. With 0, bootstrap
    exits 0 and does nothing, and the other verbs exit 112."""
    already_loaded: int = 5
    """Error of bootstrap while the label is loaded or draining: 5 or 37."""
    disabled: int = 5
    """Error of bootstrap for a disabled label: 5 or 119."""
    wrong_session: int = 5
    """Error of bootstrap for an agent of another session type: 5 or 134."""
    bad_mode: int = 5
    """Error of bootstrap for a plist that others may write: 5 or 122."""
    kickstart_waits: bool = True
    """Whether kickstart respects the throttle; one source denies it."""
    bootout: int = 0
    """Exit code of bootout while the job drains: 0 or 36."""
    bootout_wait: bool = False
    """Whether bootout supports --wait; if not, it exits 64 and stops nothing."""
    bad_request: bool = False
    """Whether `Bad request.` is printed before `Could not find service`."""
    full_header: bool = True
    """Whether the first line of `print` has the domain and the label, or the label alone."""
    loads_twice: bool = False
    """Whether a login at the screen also loads an agent that is already loaded in user/UID."""
    stays_idle: bool = False
    """Whether a job is loaded but not started, even with KeepAlive, until it is kickstarted
    (rare)."""

    pace: float = 0.05
    """Duration of one of launchd's seconds; its throttle of ten would make tests slow."""
    exit_seconds: float = 1.0
    """Time between TERM and KILL; launchd waits five seconds."""


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
