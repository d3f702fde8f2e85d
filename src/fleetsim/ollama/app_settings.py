"""The settings database of Ollama.app: what a person has switched in its window."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing

_COLUMNS: Mapping[str, str] = {
    "id": "INTEGER PRIMARY KEY",
    "expose": "BOOLEAN NOT NULL DEFAULT 0",
    "browser": "BOOLEAN NOT NULL DEFAULT 0",
    "models": "TEXT NOT NULL DEFAULT ''",
    "context_length": "INTEGER NOT NULL DEFAULT 0",
    "auto_update_enabled": "BOOLEAN NOT NULL DEFAULT 1",
    "schema_version": "INTEGER NOT NULL DEFAULT 18",
}


def database(home: str) -> str:
    return os.path.join(home, "Library/Application Support/Ollama/db.sqlite")


def read(home: str) -> dict[str, object]:
    """Made with its defaults where it is missing, as the app does at its first start."""
    with closing(_opened(home)) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute("SELECT * FROM settings").fetchone())


def write(home: str, values: Mapping[str, object]) -> None:
    if unknown := set(values) - set(_COLUMNS):
        raise ValueError(f"the app has no setting {unknown}")
    with closing(_opened(home)) as connection, connection:
        for name, value in values.items():
            connection.execute(f"UPDATE settings SET {name} = ?", (value,))


def overrides(settings: Mapping[str, object]) -> dict[str, str]:
    """What the server gets instead of what the app itself was given."""
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


def _opened(home: str) -> sqlite3.Connection:
    path = database(home)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    connection = sqlite3.connect(path, timeout=5)
    connection.execute("PRAGMA journal_mode=WAL")
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS settings ({columns})")
    connection.execute("INSERT OR IGNORE INTO settings (id) VALUES (1)")
    connection.commit()
    return connection
