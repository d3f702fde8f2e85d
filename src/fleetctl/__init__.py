"""fleetctl: one private backend for coding agents, from the machines you own."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "connections"]


if TYPE_CHECKING:
    from fleetctl.scripting import connections
else:

    def __getattr__(name: str) -> Any:
        """Import `connections`, and with it SSH, when it is first used."""
        if name == "connections":
            from fleetctl.scripting import connections

            return connections
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
