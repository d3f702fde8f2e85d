"""Ollama's HTTP API: one typed client, over any httpx transport or directly to an endpoint."""

from fleetctl.ollama.client import Client, NoAnswer, Progress

__all__ = ["Client", "NoAnswer", "Progress"]
