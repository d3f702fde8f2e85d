"""The wire protocol as text: scripts that go to a node's `/bin/sh -s`, records that come back.

A script is one function and one call, so that a cut script never starts, and it ends in `exit`, or
the shell would go back to reading its input. Each part of it answers in a record:

    @@NONCE > key
    … what the part printed, byte for byte …
    @@NONCE < key STATUS

Nobody who does not know the nonce can begin or end a record, so banners, rc files and hostile file
contents stay what they are.
"""

from fleetctl.shell.records import Garbled, Record, parse
from fleetctl.shell.script import AS_ROOT, COMMAND, Part, quote, script

__all__ = ["AS_ROOT", "COMMAND", "Garbled", "Part", "Record", "parse", "quote", "script"]
