"""What happens right now, on standard error: a living line on a terminal, else a line a node."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from fleetctl.model.plan import Result
from fleetctl.ui import console

_SHOWN = 3


class Progress:
    def __init__(self, nodes: Iterable[str]) -> None:
        self._waiting = dict.fromkeys(nodes)
        self._total = len(self._waiting)
        simple = os.environ.get("TERM", "dumb") == "dumb"
        self._living = sys.stderr is not None and sys.stderr.isatty() and not simple
        self._show()

    def tell(self, result: Result) -> None:
        self._waiting.pop(result.node, None)
        if self._living:
            self._show()
        else:
            console.talk(f"{result.node}: {result.state}")

    def _show(self) -> None:
        """Overwrites itself; nothing is left of it at the end."""
        if not self._living:
            return
        names = list(self._waiting)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        done = self._total - len(names)
        waiting = f"waiting for {', '.join(names[:_SHOWN])}{more}" if names else ""
        console.live(f"{done}/{self._total} nodes looked at, {waiting}" if names else "")
