"""What every machine is asked, whatever runs on it: who it is, what serves there, who listens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from fleetctl.model import address
from fleetctl.model.facts import Host, Scope, Server, Unknown
from fleetctl.shell.records import Record
from fleetctl.shell.script import ALIVE, Part

_HOST = r"""
uname -snrm
id
printf '%s\n' "$HOME"
section release; [ ! -r /etc/os-release ] || cat /etc/os-release
section traits
[ ! -e /etc/NIXOS ] || echo nixos
[ ! -e /.dockerenv ] && [ ! -e /run/.containerenv ] || echo container
section programs
for folder in "$HOME/.local/bin" /usr/local/bin /usr/bin /opt/homebrew/bin "$HOME/homebrew/bin" \
  /snap/bin \
  /Applications/Ollama.app/Contents/Resources "$HOME/Applications/Ollama.app/Contents/Resources"
do [ ! -x "$folder/ollama" ] || printf '%s\n' "$folder/ollama"; done
"""

_ADDRESSES = "ip -o addr 2>/dev/null || ifconfig -a"

# Only shell built-ins for most processes: a fork for each of hundreds would take a second.
_SERVERS = r"""
for at in /proc/[0-9]*; do
  { read -r name <"$at/comm"; } 2>/dev/null || continue
  case $name in (ollama*) ;; (*) continue;; esac
  command=$(tr '\000' ' ' <"$at/cmdline") 2>/dev/null || continue
  case $command in (*" serve "*) ;; (*) continue;; esac
  unit=$(sed -n 's/.*\///; $p' "$at/cgroup")
  set -- $(ls -ldn "$at"); printf '%s\t%s\t%s\t%s\n' "${at#/proc/}" "$3" "$unit" "$command"
done
"""

STATE = {
    "Linux": "/var/lib/fleetctl",
    "Darwin": "/var/db/fleetctl",
}
"""What fleetctl keeps on a node whose service is the system's, by what uname says."""

USER_STATE = "~/.local/state/fleetctl"


def find_state(scope: Scope) -> str:
    """Shell that sets `state` to the folder of that scope, on whatever system."""
    if scope == "user":
        return f'state="{USER_STATE.replace("~", "$HOME", 1)}"'
    linux, mac = STATE["Linux"], STATE["Darwin"]
    return f'state={linux}; [ "$system" != Darwin ] || state={mac}'


_AT_WORK = """
{alive}
look() {{
  if [ -L "$state/lock" ] && boot=$(boot_id) holder=$(readlink "$state/lock") && alive "$holder"
  then echo "busy ${{holder##*:}}"
  elif [ -e "$state/journal" ]
  then echo "unfinished $1"
  fi
}}
{look}
"""

_SERVERS_OF_A_MAC = r"""
ps -axo pid=,uid=,command= | while read -r pid uid command; do
  case $command in (*ollama" serve") printf '%s\t%s\t\t%s\n' "$pid" "$uid" "$command";; esac
done
"""

PARTS = (
    Part("host", _HOST),
    Part(
        "at work",
        _AT_WORK.format(
            alive=ALIVE,
            look="\n".join(f"{find_state(scope)}; look {scope}" for scope in get_args(Scope)),
        ),
    ),
    Part("addresses", _ADDRESSES),
    Part("servers", _SERVERS, system="Linux"),
    Part("servers", _SERVERS_OF_A_MAC, system="Darwin"),
)


def host(records: Mapping[str, Record]) -> Host:
    record = records["host"]
    first, who, home, *_ = [*record.text.split("\n"), "", "", ""]
    system, name, release, machine, *_ = [*first.split(" "), "", "", "", ""]
    user = re.match(r"uid=(\d+)(?:\(([^)]*)\))?", who)
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', record.section("release"), re.MULTILINE)
    traits = set(record.section("traits").split())
    return Host(
        system=system,
        release=release,
        machine=machine,
        distribution=pretty[1] if pretty else "",
        name=name,
        user=user[2] or user[1] if user else "",
        uid=int(user[1]) if user else -1,
        home=home,
        traits=frozenset(traits | ({"wsl"} if "microsoft" in release.lower() else set())),
        programs=tuple(record.section("programs").splitlines()),
        addresses=_addresses(records["addresses"]),
    )


def _addresses(record: Record) -> tuple[str, ...] | Unknown:
    if record.status != 0:
        return Unknown("the machine has neither `ip` nor `ifconfig`")
    found = re.findall(r"\binet6? (?:addr:)?([0-9a-fA-F.:]+)", record.text)
    return tuple(dict.fromkeys(filter(address.is_address, found)))


def unfinished(records: Mapping[str, Record]) -> frozenset[Scope]:
    said = records["at work"].text.splitlines()
    return frozenset(scope for scope in get_args(Scope) if f"unfinished {scope}" in said)


def at_work(records: Mapping[str, Record]) -> str:
    found = re.search(r"^busy (.*)$", records["at work"].text, re.MULTILINE)
    return found[1] if found else ""


def servers(record: Record) -> Iterator[Server]:
    for line in record.text.splitlines():
        pid, uid, unit, command = (line.split("\t") + [""] * 4)[:4]
        if pid.isdecimal() and uid.isdecimal():
            yield Server(int(pid), int(uid), unit, command.strip())
