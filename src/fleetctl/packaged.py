"""Where the files are that travel with the program: playbooks, templates, inventories, docs."""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """A wheel carries the folder in `fleetctl/data`; in a checkout it stands at the top."""
    here = Path(__file__).parent
    installed = here / "data" / name
    return installed if installed.is_dir() else here.parents[1] / name
