"""Where the files are that are installed with the program: playbooks, templates, docs."""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """In a wheel the folder is in `fleetctl/data`, in a checkout at the top level."""
    here = Path(__file__).parent
    installed = here / "data" / name
    return installed if installed.is_dir() else here.parents[1] / name
