"""Everything that people and programs read. No other room prints.

console     results, messages, tables, trees, pages: how text reaches stdout and stderr
plan        a plan and its outcome as lines
fleet       an inventory and a machine as lines
documents   reports, events and fleets as JSON
RunListener, open_log: what a run tells its listener goes to the log, the screen or as JSON
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetctl.ui.listener import RunListener, open_log

__all__ = ["RunListener", "console", "documents", "fleet", "open_log", "plan"]


def __getattr__(name: str) -> object:
    """Import what only a run needs when a run asks for it: `--help` must not load it."""
    if name not in ("RunListener", "open_log"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fleetctl.ui import listener

    return getattr(listener, name)
