"""Simulated machines for the tests and the demo: real processes and real SSH on loopback, no root.

Nothing else in fleetctl imports this package, and this file imports nothing, so that the simulated
Ollama starts fast."""
