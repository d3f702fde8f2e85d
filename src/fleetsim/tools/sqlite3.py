"""`sqlite3 -readonly`: a question to a database, which is not touched."""

import shutil
import sqlite3
import tempfile
from pathlib import Path

from fleetsim.tools.calls import Answer, Call, Refused


def sqlite3_tool(call: Call) -> Answer:
    separator, readonly, arguments = "|", False, list(call.arguments)
    while arguments and arguments[0].startswith("-"):
        match arguments.pop(0):
            case "-readonly":
                readonly = True
            case "-batch" | "-noheader" | "-list":
                pass
            case "-separator" if arguments:
                separator = arguments.pop(0)
            case option:
                raise Refused(f"option {option}")
    if len(arguments) != 2 or not readonly:
        raise Refused("anything but -readonly DATABASE SQL")
    database = call.folder / arguments[0]
    if not database.exists():
        message = f'Error: unable to open database "{database}": unable to open database file\n'
        return Answer(err=message, code=1)
    with tempfile.TemporaryDirectory() as folder:
        copy = _copied(database, Path(folder))
        try:
            rows = copy.execute(arguments[1]).fetchall()
        except sqlite3.Error as error:
            return Answer(err=f"Error: in prepare, {error}\n", code=1)
        finally:
            copy.close()
    shown = (separator.join("" if one is None else str(one) for one in row) for row in rows)
    return Answer("".join(f"{row}\n" for row in shown))


def _copied(database: Path, folder: Path) -> sqlite3.Connection:
    """With what is not yet in the database itself; a reader of the original would leave files."""
    for suffix in ("", "-wal"):
        part = Path(f"{database}{suffix}")
        if part.exists():
            shutil.copy(part, folder / part.name)
    return sqlite3.connect(folder / database.name)
