"""Installs the simulated Ollama: a copy of its package, and scripts that run it.

A copy, because machines started by root run as a user who may not be able to read this checkout."""

import shlex
import shutil
from pathlib import Path

from fleetsim import ollama

_PACKAGE = "simulated_ollama"


RUNNER = "run_program.py"
_RUN = """\
import importlib, sys
sys.pycache_prefix = {cache!r}
sys.path.insert(0, {folder!r})
module, machine, *sys.argv = sys.argv[1:]
sys.exit(importlib.import_module("{package}." + module).main([machine, *sys.argv[1:]]))
"""


def program_script(folder: Path, python: str, machine: Path, module: str = "__main__") -> str:
    """The text of a program for one machine. The program's name is among its arguments, where the
    simulated process list finds it. The host's own process list shows a Python; otherwise another
    machine on this host would take it for an Ollama of its own."""
    runner = folder / RUNNER
    text = _RUN.format(cache=f"{folder}/pycache", folder=str(folder), package=_PACKAGE)
    runner.write_text(text)
    words = shlex.join([python, "-IS", str(runner), module, str(machine)])
    return f'#!/bin/sh\nexec {words} "$0" "$@"\n'


def install_ollama(folder: Path, python: str) -> list[str]:
    """Copy the package, and return the command to put before the arguments. Without site packages
    it starts faster."""
    source = Path(ollama.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / _PACKAGE, ignore=ignored, dirs_exist_ok=True)
    start = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); "
        f"from {_PACKAGE}.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    return [python, "-IS", "-X", f"pycache_prefix={folder}/pycache", "-c", start]
