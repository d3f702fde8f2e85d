"""Simulated machines for the tests and the demo: real processes and real SSH on loopback, no root.

A package of its own: it imports nothing of fleetctl, and fleetctl reaches it only from the `demo`
command. This file imports nothing, so that the simulated Ollama starts fast.
"""
