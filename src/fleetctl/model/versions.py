"""Versions that fleetctl knows something about."""

from __future__ import annotations

OLLAMA_FLOOR = (0, 17, 1)
"""Before it anybody who reaches the port can read the server's memory (CVE-2026-7482)."""
