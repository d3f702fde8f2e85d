"""`stat -f`: what macOS says about a file, and who owns the screen."""

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleetsim.tools.calls import Answer, Call, Refused
from fleetsim.tools.ps import options

CONSOLE = "/dev/console"
_KINDS = {
    stat.S_IFREG: "Regular File",
    stat.S_IFDIR: "Directory",
    stat.S_IFLNK: "Symbolic Link",
    stat.S_IFCHR: "Character Device",
    stat.S_IFSOCK: "Socket",
    stat.S_IFIFO: "Fifo File",
}


@dataclass(frozen=True, slots=True)
class Stat:
    names: Mapping[int, str]
    console: Callable[[], int]
    """Who owns the screen; root when nobody is logged in."""

    def __call__(self, call: Call) -> Answer:
        given, files = options(call.arguments, "Lnf:", "stat")
        formats = [value for flag, value in given if flag == "-f"]
        flags = {flag for flag, _ in given}
        if not formats or not files:
            raise Refused("stat without -f, or without a file")
        out = err = ""
        for name in files:
            path = call.folder / name
            try:
                status = path.stat() if "-L" in flags else path.lstat()
            except OSError as error:
                err += f"stat: {name}: stat: {error.strerror}\n"
                continue
            out += self._filled(formats[-1], name, status) + ("" if "-n" in flags else "\n")
        return Answer(out, err, code=1 if err else 0)

    def _filled(self, form: str, name: str, status: os.stat_result) -> str:
        uid = self.console() if name == CONSOLE else status.st_uid
        known = {
            "%u": str(uid),
            "%Su": self.names.get(uid, str(uid)),
            "%g": str(status.st_gid),
            "%Lp": f"{stat.S_IMODE(status.st_mode) & 0o777:o}",
            "%OLp": f"{stat.S_IMODE(status.st_mode) & 0o777:o}",
            "%Mp": f"{(status.st_mode >> 9) & 0o7:o}",
            "%p": f"{status.st_mode:o}",
            "%Sp": stat.filemode(status.st_mode),
            "%z": str(status.st_size),
            "%m": str(int(status.st_mtime)),
            "%a": str(int(status.st_atime)),
            "%c": str(int(status.st_ctime)),
            "%i": str(status.st_ino),
            "%d": str(status.st_dev),
            "%l": str(status.st_nlink),
            "%N": name,
            "%HT": _KINDS.get(stat.S_IFMT(status.st_mode), "???"),
            "%n": "\n",
            "%t": "\t",
            "%%": "%",
        }

        def value(found: re.Match[str]) -> str:
            if found[0] not in known:
                raise Refused(f"format {found[0]}")
            return known[found[0]]

        return re.sub(r"%([HLMSO]*[A-Za-z%])?", value, form)
