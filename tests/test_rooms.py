"""The order of the rooms: a file imports only from rooms below its own, and below the line nothing
can connect, start or write anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fleetctl"

ROOMS = [
    "cli", "scripting", "session", "join", "project", "run", "watch", "execute", "gather",
    "gateway", "links", "ollama", "ui", "restore", "planner", "audit", "playbook", "targets",
    "steps", "controller", "services", "render", "shell", "inventory", "model", "codecs",
    "packaged", "errors",
]  # fmt: skip
"""From the top to the bottom. docs/architecture.md explains them."""

LINE = ROOMS.index("restore")

HANDS = {
    "asyncio", "fabric", "ftplib", "http", "httpcore", "httpx", "invoke", "multiprocessing",
    "paramiko", "pty", "requests", "shutil", "smtplib", "socket", "socketserver", "ssl",
    "subprocess", "tempfile", "telnetlib", "urllib.request", "urllib3", "webbrowser",
}  # fmt: skip
WRITING_CALLS = {
    "chmod", "exec", "execv", "fork", "hardlink_to", "mkdir", "mkfifo", "popen", "posix_spawn",
    "rename", "replace_file", "rmdir", "spawnv", "symlink_to", "system", "touch", "unlink",
    "write_bytes", "write_text", "writelines",
}  # fmt: skip

MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(file: Path) -> str:
    first = file.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inner_room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "fleetctl" and len(parts) > 1 and parts[1] in ROOMS else None


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_imports_only_from_rooms_below_its_own(file: Path) -> None:
    room = room_of(file)
    if room in ("__init__", "__main__"):
        return
    assert room in ROOMS, f"{room} has no place in the order of rooms"
    for module in imports(ast.parse(file.read_text())):
        other = inner_room(module)
        if other is not None and other != room:
            assert ROOMS.index(other) > ROOMS.index(room), f"{file.name} imports {module}, above it"


BELOW = [file for file in MODULES if room_of(file) in ROOMS[LINE:]]


@pytest.mark.parametrize("file", BELOW, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nothing_below_the_line_can_connect_start_or_write(file: Path) -> None:
    tree = ast.parse(file.read_text())
    for module in imports(tree):
        assert not {module, module.partition(".")[0]} & HANDS, f"{file.name} imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            assert not writes(node), f"{file.name}:{node.lineno} writes or starts something"


def writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open":
        texts = [arg.value for arg in (*call.args, *(k.value for k in call.keywords))
                 if isinstance(arg, ast.Constant)]  # fmt: skip
        return any(isinstance(text, str) and set(text) & set("wax+") for text in texts)
    return name in WRITING_CALLS


@pytest.mark.parametrize(
    "source",
    ["open('f', 'w')", "path.write_text('x')", "path.open(mode='a')", "os.system('x')"],
)
def test_the_rule_about_writing_can_fail(source: str) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert writes(call)


def test_printing_is_left_to_the_ui() -> None:
    for file in MODULES:
        if room_of(file) == "ui":
            continue
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        names = {ast.unparse(call.func) for call in calls}
        assert not names & {"print", "click.echo", "click.secho", "sys.stdout.write"}, file


def test_only_services_know_an_init_system() -> None:
    for file in (*MODULES, *SOURCE.rglob("*.sh")):
        if room_of(file) != "services":
            words = file.read_text()
            assert "systemctl" not in words, file
            assert "launchctl" not in words, file


def test_services_know_nothing_of_ollama_but_its_app_and_its_formula() -> None:
    about_ollama = ("ollama_app", "homebrew")
    for file in (SOURCE / "services").iterdir():
        if file.suffix in (".py", ".sh") and file.stem not in about_ollama:
            words = file.read_text()
            if file.name == "__init__.py":
                words = words.replace("ollama_app", "")  # imported and registered there
            assert "ollama" not in words.lower(), file


def test_only_the_demo_command_reaches_the_simulation() -> None:
    for file in MODULES:
        if any(name.split(".")[0] == "fleetsim" for name in imports(ast.parse(file.read_text()))):
            assert file.relative_to(SOURCE) == Path("cli/demo.py")


def test_the_simulation_does_not_use_the_product() -> None:
    for file in SOURCE.with_name("fleetsim").rglob("*.py"):
        for name in imports(ast.parse(file.read_text())):
            assert name.split(".")[0] != "fleetctl", file
