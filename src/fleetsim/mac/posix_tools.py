"""The POSIX tools of a Mac: the host's, each behind a guard script that accepts only options that
macOS has with the same meaning. Nothing else of the host is in the PATH of a Mac."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from fleetsim.tools.calls import write_absent, write_constant, write_program

HOST_PATH = "/usr/local/libexec/mac/host:/usr/bin:/bin:/usr/sbin:/sbin"
"""On a node of the lab the host's tools are in the first of these folders only."""

_SAME = (
    "sh", "dash", "bash", "zsh", "basename", "comm", "dirname", "echo", "env", "expr", "false",
    "fold", "gzip", "gunzip", "kill", "nohup", "paste", "perl", "printf", "pwd", "rmdir", "shasum",
    "sleep", "test", "[", "true", "tty",
)  # fmt: skip
"""Tools that need no guard: what scripts use of them is the same on both systems."""

_OPTIONS: Mapping[str, str] = {
    "awk": "F:v:f:",
    "cat": "benstuv",
    "chmod": "RfvhHLP",
    "chown": "RfhvHLP",
    "cksum": "",
    "cmp": "lsz",
    "cp": "RpPHLfinav",
    "cut": "b:c:d:f:sn",
    "dd": "",
    "df": "Pkhml",
    "diff": "uqrNbBiwaU:",
    "du": "skhd:axcm",
    "find": "",
    "grep": "EFvqiolnchHsxwm:e:f:A:B:C:arLR",
    "head": "n:c:0123456789",
    "ls": "lLdnaA1tRriSFhskpqmxCHcu",
    "ln": "sfnivLP",
    "mkdir": "pm:v",
    "mv": "finv",
    "od": "A:t:N:j:vcxo",
    "readlink": "n",
    "rm": "rRfdiv",
    "sort": "bdfgiMnRrVuck:t:o:mzs",
    "tail": "n:c:fFq0123456789",
    "tee": "ai",
    "touch": "acmhr:t:",
    "tr": "Ccds",
    "uniq": "cdiuf:s:",
    "wc": "lwcm",
    "xargs": "0I:n:P:prtE:L:s:x",
}
"""Options that mean the same on both systems, in the notation of getopts."""

_EXTRA: Mapping[str, str] = {
    "awk": "*gensub*|*strftime*|*systime*|*asort*",
    "dd": "*flag=*|*status=*|*conv=fsync*",
    "find": "*-printf*|*-regextype*|*-readable*|*-writable*|*-executable*|-*",
    "head": "'-n -'*|*' -n -'*|'-c -'*",
}
"""Patterns of arguments, joined by blanks, that only GNU understands."""

_NOT_SIMULATED = (
    "caffeinate", "codesign", "curl", "defaults", "diskutil", "ditto", "hdiutil", "install",
    "ioreg", "jq", "killall", "lockf", "log", "md5", "memory_pressure", "nc", "networksetup",
    "osascript", "route", "security", "sha256sum", "shlock", "softwareupdate", "spctl", "su",
    "system_profiler", "systemsetup", "tar", "top", "unzip", "vm_stat", "w", "who", "xattr",
)  # fmt: skip
"""A Mac has these, so "not found" would be wrong: they are refused as not simulated."""

_ABSENT = (
    "timeout", "flock", "setsid", "tac", "nproc", "free", "ss", "ip", "getent", "systemctl",
    "journalctl", "loginctl", "systemd-analyze", "python3", "python", "zstd", "realpath", "sudo",
)  # fmt: skip
"""Missing on a Mac. Written only if the host has them in folders that scripts append to PATH."""
_APPENDED = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"

_GUARD = """\
#!/bin/sh
refuse() {{
  echo "{name}: not simulated: $1 (in: {name} $all)" >&2
  echo "{name} $all: $1" >>{refused}
  exit 125
}}
all=$*
# GNU extensions of basic regular expressions
basic() {{
  case $all in (*'\\+'*|*'\\|'*|*'\\?'*) refuse 'a GNU regular expression';; esac
}}
"""

_CHECK = """\
kind={kind}
while getopts ':{options}' option; do
  case $option in (E|F) kind=other;; ('?'|:) refuse "option -$OPTARG";; esac
done
[ $kind != basic ] || basic
"""

_UNLESS = """\
case $all in ({patterns}) refuse "an argument that only GNU understands";; esac
"""

# without POSIXLY_CORRECT GNU tools also accept options after words
_RUN = """\
POSIXLY_CORRECT=1; export POSIXLY_CORRECT
exec {real} "$@"
"""

_BODIES: Mapping[str, str] = {
    "base64": """\
file= decode=-w0
while getopts ':dDi:' option; do
  case $option in (d|D) decode=-d;; (i) file=$OPTARG;; (*) refuse "option -$OPTARG";; esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || { echo "base64: invalid argument $1" >&2; exit 64; }
[ -z "$file" ] || exec <"$file" || exit
{real} "$decode"
status=$?
[ "$decode" = -d ] || echo
exit $status
""",
    "date": """\
at=
while getopts ':ur:' option; do
  case $option in (u) TZ=UTC0; export TZ;; (r) at=$OPTARG;; (*) refuse "option -$OPTARG";; esac
done
shift $((OPTIND - 1))
case $*/$# in (*%N*) refuse %N;; (+*/1|/0) ;; (*) refuse "setting the date";; esac
[ -z "$at" ] || [ ! -e "$at" ] || exec {real} -r "$at" "$@"
[ -z "$at" ] || set -- -d "@$at" "$@"
exec {real} "$@"
""",
    "mktemp": """\
kind= prefix=tmp
while getopts ':dt:' option; do
  case $option in (d) kind=-d;; (t) prefix=$OPTARG;; (*) refuse "option -$OPTARG";; esac
done
shift $((OPTIND - 1))
# the system's folder for the user, not $TMPDIR
[ $# != 0 ] || set -- {tmp}/"$prefix.XXXXXXXXXX"
exec {real} $kind -- "$@"
""",
    "sed": """\
kind=basic in_place=no suffix=
while getopts ':Enai:e:f:' option; do
  case $option in
    (i) in_place=yes suffix=$OPTARG;;
    (E) kind=extended;;
    ('?'|:) refuse "option -$OPTARG";;
  esac
done
[ $kind != basic ] || basic
[ $in_place = no ] || refuse "-i (with the suffix '$suffix', as macOS would read it)"
POSIXLY_CORRECT=1; export POSIXLY_CORRECT
exec {real} "$@"
""",
    "sync": """\
exit 0
""",
    "ifconfig": """\
[ "$all" = -a ] || refuse "anything but -a"
cat <<'END'
{interfaces}
END
""",
}


def host_tools() -> tuple[str, ...]:
    """Names of the tools that a Mac uses from its host."""
    return (*_SAME, *_OPTIONS, *_BODIES)


def install_posix_tools(tools: Path, same: Path, refused: Path, facts: Mapping[str, str]) -> None:
    """Write guards into `tools`, and links to tools that need none into `same`. `facts` are values
    for the placeholders in the scripts."""
    same.mkdir(exist_ok=True)
    for name in _SAME:
        real = shutil.which(name, path=HOST_PATH)
        if real and not (same / name).is_symlink():
            (same / name).symlink_to(real)
    for name, options in _OPTIONS.items():
        kind = "basic" if name == "grep" else "none"
        check = _CHECK.format(options=options, kind=kind) if name != "find" else ""
        unless = _UNLESS.format(patterns=_EXTRA[name]) if name in _EXTRA else ""
        _write(tools, name, check + unless + _RUN, refused, facts)
    for name, body in _BODIES.items():
        _write(tools, name, body, refused, facts)
    for name in _NOT_SIMULATED:
        write_constant(tools, name, {}, refused)
    for name in _ABSENT:
        if shutil.which(name, path=_APPENDED):
            write_absent(tools, name)


def _write(tools: Path, name: str, body: str, refused: Path, facts: Mapping[str, str]) -> None:
    real = shutil.which(name, path=HOST_PATH) or f"/usr/bin/{name}"
    for key, value in {"real": shlex.quote(real), **facts}.items():
        body = body.replace(f"{{{key}}}", value)
    guard = _GUARD.format(name=name, refused=shlex.quote(str(refused)))
    write_program(tools / name, guard + body)
