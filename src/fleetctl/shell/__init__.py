"""The wire protocol as text: scripts for a machine's `/bin/sh -s`, and the answers they print."""

from fleetctl.shell.protocol import (
    COMMAND,
    HOST,
    LOCK,
    NODE_STATE,
    SYSTEMS,
    Garbled,
    Os,
    Question,
    file_in,
    files_in,
    files_question,
    has_unreadable,
    in_shell,
    parse,
    quote,
    script,
)

__all__ = [
    "COMMAND",
    "HOST",
    "LOCK",
    "NODE_STATE",
    "SYSTEMS",
    "Garbled",
    "Os",
    "Question",
    "file_in",
    "files_in",
    "files_question",
    "has_unreadable",
    "in_shell",
    "parse",
    "quote",
    "script",
]
