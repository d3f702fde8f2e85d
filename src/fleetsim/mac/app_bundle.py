"""The files of Ollama.app: the app, the command line inside it, and its login item."""

import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetsim.ollama.app import LOGIN_ITEM
from fleetsim.tools.calls import write_program


def write_app(contents: Path, script: str, link: Path, login_items: Path) -> None:
    """Write everything but Contents/Resources/ollama; `link`, a name in the user's PATH, points
    there. The login item is registered, as after the first time the app was opened."""
    app = contents / "MacOS/Ollama"
    squirrel = contents / "Frameworks/Squirrel.framework/Versions/A/Squirrel"
    plist = contents / "Library/LaunchAgents" / LOGIN_ITEM
    for folder in (app.parent, squirrel.parent, plist.parent, login_items):
        folder.mkdir(parents=True, exist_ok=True)
    write_program(app, script)
    write_program(squirrel, f'#!/bin/sh\nexec "{app}" hidden\n')
    values = {
        "Label": LOGIN_ITEM.removesuffix(".plist"),
        "ProgramArguments": [str(squirrel), "background"],
        "RunAtLoad": True,
        "LimitLoadToSessionType": "Aqua",
    }
    write_plist(plist, values)
    (login_items / LOGIN_ITEM).symlink_to(plist)
    link.symlink_to(contents / "Resources/ollama")


def write_plist(path: Path, values: Mapping[str, Any]) -> None:
    path.write_bytes(plistlib.dumps(dict(values)))
    path.chmod(0o644)
