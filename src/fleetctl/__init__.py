"""fleetctl: one private backend for coding agents, from the machines you own."""

__version__ = "0.1.0.dev0"
