"""`lsof` and `netstat`, limited to listening TCP sockets."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fleetsim.mac.process_table import Process
from fleetsim.tools.calls import Answer, Call, Refused, parse_short_options
from fleetsim.tools.ps import Table

_LISTEN = "0A"
_ANY = ("0.0.0.0", "::", "*", "")


@dataclass(frozen=True, slots=True)
class Listener:
    process: Process
    descriptor: int
    host: str
    """`*` for all addresses."""
    port: int
    v6: bool

    def shown(self, separator: str) -> str:
        host = f"[{self.host}]" if self.v6 and self.host != "*" and separator == ":" else self.host
        return f"{host}{separator}{self.port}"


ConfiguredAddress = Callable[[Process, str, int], tuple[str, int]]
"""Maps a process and its real listening address to the address it is configured to listen on; see
`Machine.ollama_port`."""


def listeners(table: Table, configured: ConfiguredAddress) -> Iterator[Listener]:
    listening = {inode: address for inode, *address in _sockets()}
    for process in table():
        try:
            descriptors = list(Path(f"/proc/{process.pid}/fd").iterdir())
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            inode = target.removeprefix("socket:[").removesuffix("]")
            if inode in listening:
                host, port, v6 = listening[inode]
                shown, number = configured(process, host, int(port))
                host = "*" if shown in _ANY else shown
                yield Listener(process, int(descriptor.name), host, number, v6 == "6")


def _sockets() -> Iterator[tuple[str, str, str, str]]:
    for name, version in (("tcp", "4"), ("tcp6", "6")):
        file = Path(f"/proc/net/{name}")
        for line in file.read_text().splitlines()[1:] if file.exists() else []:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == _LISTEN:
                yield fields[9], _address(address), str(int(port, 16)), version


def _address(text: str) -> str:
    if len(text) == 8:
        return ".".join(str(int(text[at : at + 2], 16)) for at in (6, 4, 2, 0))
    if int(text, 16) == 0:
        return "::"
    return "::1" if text.endswith("01000000") and int(text[:24], 16) == 0 else "?"


@dataclass(frozen=True, slots=True)
class Lsof:
    """Without root it lists only the caller's own processes."""

    table: Table
    configured: ConfiguredAddress
    names: Mapping[int, str]

    def __call__(self, call: Call) -> Answer:
        given, words = parse_short_options(call.arguments, "nPati:s:F:p:", "lsof")
        values = dict(given)
        if words or values.get("-s") != "TCP:LISTEN" or "-i" not in values:
            raise Refused("lsof for anything but listening sockets")
        asked = re.fullmatch(r"TCP(?::(\d+))?", values["-i"])
        if not asked or "-n" not in values or "-P" not in values:
            raise Refused("lsof with names of hosts or ports")
        found = [
            one
            for one in listeners(self.table, self.configured)
            if (not asked[1] or one.port == int(asked[1]))
            and call.uid in (0, one.process.uid)
            and ("-p" not in values or str(one.process.pid) in values["-p"].split(","))
        ]
        code = 0 if found else 1
        if "-t" in values:
            return Answer("".join(f"{one.process.pid}\n" for one in found), code=code)
        if "-F" in values:
            return Answer("".join(_fields(one, values["-F"]) for one in found), code=code)
        header = "COMMAND   PID USER   FD   TYPE             DEVICE SIZE/OFF NODE NAME\n"
        rows = "".join(self._row(one) for one in found)
        return Answer(header + rows if found else "", code=code)

    def _row(self, one: Listener) -> str:
        user = self.names.get(one.process.uid, str(one.process.uid))
        return (
            f"{one.process.name[:9]:<9} {one.process.pid:>5} {user:<6} {one.descriptor:>3}u  "
            f"{'IPv6' if one.v6 else 'IPv4'} 0x1234567890abcdef      0t0  TCP "
            f"{one.shown(':')} (LISTEN)\n"
        )


def _fields(one: Listener, wanted: str) -> str:
    known = {
        "p": f"p{one.process.pid}\n",
        "c": f"c{one.process.name}\n",
        "u": f"u{one.process.uid}\n",
        "f": f"f{one.descriptor}\n",
        "n": f"n{one.shown(':')}\n",
    }
    if set(wanted) - set(known):
        raise Refused(f"fields {wanted}")
    # p and f are printed whether requested or not
    return "".join(text for key, text in known.items() if key in wanted or key in "pf")


@dataclass(frozen=True, slots=True)
class Netstat:
    table: Table
    configured: ConfiguredAddress

    def __call__(self, call: Call) -> Answer:
        given, words = parse_short_options(call.arguments, "anp:f:", "netstat")
        values = dict(given)
        if words or "-a" not in values or "-n" not in values or values.get("-p") != "tcp":
            raise Refused("netstat but for -an -p tcp")
        family = values.get("-f", "")
        if family not in ("", "inet", "inet6"):
            raise Refused(f"family {family}")
        lines = [
            "Active Internet connections (including servers)\n",
            "Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)    \n",
        ]
        for one in listeners(self.table, self.configured):
            protocol = "tcp6" if one.v6 else "tcp46" if one.host == "*" else "tcp4"
            if family == "inet6" and not one.v6:
                continue
            lines.append(
                f"{protocol:<5}      0      0  {one.shown('.'):<22} *.*      LISTEN     \n"
            )
        return Answer("".join(lines))
