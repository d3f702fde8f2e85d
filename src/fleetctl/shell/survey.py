"""What every machine is asked, whatever runs on it: who it is, what serves there, who listens."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping

from fleetctl.model.facts import Host, Server, Unknown
from fleetctl.shell.records import Record
from fleetctl.shell.script import Part

_HOST = r"""
say() { printf '%s=%s\n' "$1" "$2"; }
say system "$(uname -s)"; say release "$(uname -r)"; say machine "$(uname -m)"
say name "$(uname -n)"; say user "$(id -un)"; say uid "$(id -u)"; say home "$HOME"
[ ! -r /etc/os-release ] || say distribution "$(. /etc/os-release; printf %s "${PRETTY_NAME-}")"
[ ! -e /etc/NIXOS ] || say trait nixos
[ ! -e /.dockerenv ] && [ ! -e /run/.containerenv ] || say trait container
case $(uname -r) in (*[Mm]icrosoft*) say trait wsl;; esac
for folder in "$HOME/.local/bin" /usr/local/bin /usr/bin /opt/homebrew/bin /snap/bin \
  /Applications/Ollama.app/Contents/Resources "$HOME/Applications/Ollama.app/Contents/Resources"
do [ ! -x "$folder/ollama" ] || say program "$folder/ollama"; done
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

_LISTENERS = "cat /proc/net/tcp /proc/net/tcp6"

PARTS = (
    Part("host", _HOST),
    Part("addresses", _ADDRESSES),
    Part("servers", _SERVERS, system="Linux"),
    Part("listeners", _LISTENERS, system="Linux"),
)


def host(records: Mapping[str, Record]) -> Host:
    values: dict[str, list[str]] = {}
    for line in records["host"].text.splitlines():
        key, _, value = line.partition("=")
        values.setdefault(key, []).append(value)

    def first(key: str) -> str:
        return values.get(key, [""])[0]

    return Host(
        system=first("system"),
        release=first("release"),
        machine=first("machine"),
        distribution=first("distribution"),
        name=first("name"),
        user=first("user"),
        uid=int(first("uid")) if first("uid").isdecimal() else -1,
        home=first("home"),
        traits=frozenset(values.get("trait", [])),
        programs=tuple(values.get("program", [])),
        addresses=_addresses(records["addresses"]),
    )


def _addresses(record: Record) -> tuple[str, ...] | Unknown:
    if record.status != 0:
        return Unknown("the machine has neither `ip` nor `ifconfig`")
    found = re.findall(r"\binet6? (?:addr:)?([0-9a-fA-F.:]+)", record.text)
    return tuple(dict.fromkeys(filter(_is_address, found)))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def servers(record: Record) -> Iterator[Server]:
    for line in record.text.splitlines():
        pid, uid, unit, command = (line.split("\t") + [""] * 4)[:4]
        if pid.isdecimal() and uid.isdecimal():
            yield Server(int(pid), int(uid), unit, command.strip())


def listeners(record: Record) -> Iterator[tuple[str, int]]:
    """Address and port of every listening socket, from /proc/net/tcp."""
    for line in record.text.splitlines():
        words = line.split()
        if len(words) > 3 and words[3] == "0A":
            address, _, port = words[1].partition(":")
            yield _from_hex(address), int(port, 16)


def _from_hex(text: str) -> str:
    """The kernel prints addresses as 32-bit words in the machine's byte order."""
    words = [int(text[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
