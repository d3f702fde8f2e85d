"""Simulated machines for the tests and the demo: real processes and real SSH on loopback, no root.

A package separate from fleetctl: it imports nothing from fleetctl, and only the `demo` command of
fleetctl imports it.
"""

ADDRESS = "192.168.77.10"
"""The address of every simulated machine, in addition to loopback."""
