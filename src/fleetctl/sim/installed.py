"""The simulated Ollama as something to install: a copy of its package, and how to run it.

A copy, because on a machine started by root it runs as a user who may not read this checkout."""

import shutil
from pathlib import Path

from fleetctl.sim import ollama

_PACKAGE = "simulated_ollama"


def ollama_script(folder: Path, python: str, machine: Path, main: str = "__main__") -> str:
    """A program for one machine, whose name in the list of processes is that of its file."""
    return (
        f"#!{python} -IS\n"
        f"import sys\n"
        f"sys.pycache_prefix = {f'{folder}/pycache'!r}\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        f"from {_PACKAGE}.{main} import main\n"
        f"sys.exit(main([{str(machine)!r}, *sys.argv[1:]]))\n"
    )


def install_ollama(folder: Path, python: str) -> list[str]:
    """What to put in front of the arguments. Without site packages it starts faster."""
    source = Path(ollama.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / _PACKAGE, ignore=ignored, dirs_exist_ok=True)
    start = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); "
        f"from {_PACKAGE}.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    return [python, "-IS", "-X", f"pycache_prefix={folder}/pycache", "-c", start]
