"""A file by which an init system is told how to run the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceFile:
    template: str
    path: str
    """`~` is the home of the user."""
    holds_settings: bool = False
    defines: bool = False
    """Whether the init system must read its files again after a change of it."""
