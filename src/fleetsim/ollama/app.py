"""Ollama.app: runs a server as its child process, with the settings of its window."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from . import log
from .behaviour import Behaviour, read_behaviour
from .server import exit_with_supervisor
from .settings import cloud

_COLUMNS: Mapping[str, str] = {
    "id": "INTEGER PRIMARY KEY",
    "expose": "BOOLEAN NOT NULL DEFAULT 0",
    "browser": "BOOLEAN NOT NULL DEFAULT 0",
    "models": "TEXT NOT NULL DEFAULT ''",
    "context_length": "INTEGER NOT NULL DEFAULT 0",
    "auto_update_enabled": "BOOLEAN NOT NULL DEFAULT 1",
    "schema_version": "INTEGER NOT NULL DEFAULT 18",
}
_KEPT_LOGS = 5
_KILL_SECONDS = 5.0
_POLL_SECONDS = 0.02
_QUITTING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
LOGIN_ITEM = "com.ollama.ollama.plist"


def settings_database(home: str) -> str:
    return os.path.join(home, "Library/Application Support/Ollama/db.sqlite")


def read_app_settings(home: str) -> dict[str, object]:
    """Read the settings; the database is created with its defaults if missing, as the app does at
    its first start."""
    with closing(_open_settings(home)) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute("SELECT * FROM settings").fetchone())


def write_app_settings(home: str, values: Mapping[str, object]) -> None:
    if unknown := set(values) - set(_COLUMNS):
        raise ValueError(f"the app has no setting {unknown}")
    with closing(_open_settings(home)) as connection, connection:
        for name, value in values.items():
            connection.execute(f"UPDATE settings SET {name} = ?", (value,))


def server_overrides(settings: Mapping[str, object]) -> dict[str, str]:
    """Variables that the settings override in the server's environment."""
    found = {}
    if settings["expose"]:
        found["OLLAMA_HOST"] = "0.0.0.0"
    if settings["browser"]:
        found["OLLAMA_ORIGINS"] = "*"
    models = str(settings["models"])
    if models and os.path.isdir(models):
        found["OLLAMA_MODELS"] = models
    if settings["context_length"]:
        found["OLLAMA_CONTEXT_LENGTH"] = str(settings["context_length"])
    return found


def _open_settings(home: str) -> sqlite3.Connection:
    path = settings_database(home)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    connection = sqlite3.connect(path, timeout=5)
    connection.execute("PRAGMA journal_mode=WAL")
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS settings ({columns})")
    connection.execute("INSERT OR IGNORE INTO settings (id) VALUES (1)")
    connection.commit()
    return connection


def main(arguments: list[str]) -> int:
    """Arguments: the folder of the machine, then those of `open --args`."""
    folder, *words = arguments
    if "serve" in words:
        print("serve command not supported, use ollama", file=sys.stderr)
        return 1
    if unknown := set(words) - {"hidden", "--fast-startup"}:
        log.refuse(folder, f"Ollama.app: {unknown} is not simulated")
    threading.Thread(target=exit_with_supervisor, args=(folder,), daemon=True).start()
    app = _App(folder, os.environ["HOME"])
    if "hidden" in words and "--fast-startup" not in words:
        app.update()
    app.register()
    return app.run()


class _App:
    def __init__(self, folder: str, home: str) -> None:
        self._folder = folder
        self._home = home
        contents = os.path.dirname(os.path.dirname(os.path.realpath(sys.argv[0])))
        self._contents = contents
        self._quitting = False
        self._stopped_others = False

    @property
    def _behaviour(self) -> Behaviour:
        return read_behaviour(os.path.join(self._folder, "ollama.json"))

    def update(self) -> None:
        """Install an update that was downloaded before, as a start in the background does."""
        staged = os.path.join(self._home, "Library/Caches/ollama/updates/version")
        if os.path.exists(staged) and read_app_settings(self._home)["auto_update_enabled"]:
            with open(staged, encoding="utf-8") as file:
                version = file.read().strip()
            os.unlink(staged)
            behaviour = self._behaviour._replace(version=version)
            behaviour.write(os.path.join(self._folder, "ollama.json"))

    def register(self) -> None:
        """Register the login item, so that the app starts at each login."""
        items = os.path.join(self._folder, "login-items")
        os.makedirs(items, exist_ok=True)
        link = os.path.join(items, LOGIN_ITEM)
        if not os.path.islink(link):
            os.symlink(os.path.join(self._contents, "Library/LaunchAgents", LOGIN_ITEM), link)

    def run(self) -> int:
        for number in _QUITTING:
            signal.signal(number, self._quit)
        logs = os.path.join(self._home, ".ollama/logs")
        os.makedirs(logs, exist_ok=True)
        for name in ("app", "server"):
            _rotate(logs, name)
        with open(os.path.join(logs, "app.log"), "ab") as own:
            os.dup2(own.fileno(), 2)
        log.info("app.go:1", "starting Ollama", app=self._contents)
        while not self._quitting:
            child = self._serve(os.path.join(logs, "server.log"))
            while child.poll() is None and not self._quitting:
                time.sleep(_POLL_SECONDS)
            if self._quitting:
                self._stop_server(child)
            elif child.returncode == 1 and not self._stopped_others:
                self._stop_other_servers()
            time.sleep(0 if self._quitting else self._behaviour.app_respawn_seconds)
        return 0

    def _serve(self, log_file: str) -> "subprocess.Popen[bytes]":
        """Start the server; it appends to the log of the previous one."""
        settings = read_app_settings(self._home)
        no_cloud, _ = cloud(os.environ.get("OLLAMA_NO_CLOUD", ""), self._home)
        environment = {
            **os.environ,
            **server_overrides(settings),
            "OLLAMA_NO_CLOUD": "1" if no_cloud else "0",
        }
        program = os.path.join(self._contents, "Resources/ollama")
        with open(log_file, "ab") as output:
            child = subprocess.Popen(
                [program, "serve"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        pid_file = os.path.join(os.path.dirname(settings_database(self._home)), "ollama.pid")
        with open(pid_file, "w", encoding="utf-8") as file:
            file.write(str(child.pid))
        return child

    def _quit(self, _number: int, _frame: object) -> None:
        self._quitting = True

    def _stop_server(self, child: "subprocess.Popen[bytes]") -> None:
        time.sleep(self._behaviour.app_quit_seconds)
        child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()

    def _stop_other_servers(self) -> None:
        """End all other servers of this machine, since one has the port. Done once only."""
        self._stopped_others = True
        for pid in _servers(self._folder):
            os.kill(pid, signal.SIGTERM)


def _servers(folder: str) -> Iterator[int]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        is_simulated = os.fsencode(folder) in words and b"serve" in words
        if is_simulated or (words[1:2] == [b"serve"] and words[0].endswith(b"/ollama")):
            yield int(name)


def _rotate(folder: str, name: str) -> None:
    """Rename server.log to server-1.log, and so on."""
    numbered = [os.path.join(folder, f"{name}-{at}.log") for at in range(1, _KEPT_LOGS + 1)]
    files = [os.path.join(folder, f"{name}.log"), *numbered]
    for older, newer in reversed(list(zip(files[1:], files, strict=False))):
        if os.path.exists(newer):
            os.replace(newer, older)
