"""The wheels that pip needs on a controller node, which cannot reach a package index."""

import sys
from pathlib import Path

from tests.lab.cache import made
from tests.lab.command import run

NODE_PYTHON = "3.11"  # the Python of the base image's Debian


def wheel_house(requirements: Path) -> Path:
    def build(folder: Path) -> None:
        wheels_for_nodes = ("--only-binary=:all:", "--python-version", NODE_PYTHON)
        download = (sys.executable, "-m", "pip", "download", "--quiet", *wheels_for_nodes)
        run(*download, "--dest", folder, "--requirement", requirements)

    return made(f"wheels-{requirements.stem}", requirements.read_text(), build)
