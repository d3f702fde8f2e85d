"""Tools that report facts of a Mac: name, release, hardware, users, FileVault, firewall, power."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetsim import ADDRESS
from fleetsim.launchd.site import User
from fleetsim.launchd.variant import Variant
from fleetsim.tools.calls import Answer, Call, Refused

INTERFACES = f"""\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether a4:83:e7:00:00:01
\tinet {ADDRESS} netmask 0xffffff00 broadcast 192.168.77.255
\tstatus: active"""
_MACHINE = "arm64"
_MEMORY = 16 * 2**30
MAC_VRAM = 107 * 2**30 // 10
"""The part of the memory that Metal uses by default, as measured."""
_POWER_DEFAULTS = {
    "sleep": 1, "disksleep": 10, "displaysleep": 10, "womp": 1, "autorestart": 0,
    "ttyskeepawake": 1, "tcpkeepalive": 1, "powernap": 1, "standby": 0, "disablesleep": 0,
}  # fmt: skip


def constant_tools(name: str, variant: Variant) -> dict[str, dict[str, str]]:
    """Arguments of `write_constant`: output by tool and arguments."""
    kernel = variant.kernel
    version = f"Darwin Kernel Version {kernel}: root:xnu/RELEASE_ARM64_T6000"
    product = {
        "ProductName": "macOS",
        "ProductVersion": variant.macos,
        "BuildVersion": variant.build,
    }
    everything = "\n".join(f"{key}:\t\t{value}" for key, value in product.items())
    return {
        "uname": {
            "": "Darwin",
            "-s": "Darwin",
            "-m": _MACHINE,
            "-r": kernel,
            "-n": name,
            "-sm": f"Darwin {_MACHINE}",
            "-s -m": f"Darwin {_MACHINE}",
            "-sr": f"Darwin {kernel}",
            "-srm": f"Darwin {kernel} {_MACHINE}",
            "-snrm": f"Darwin {name} {kernel} {_MACHINE}",
            "-a": f"Darwin {name} {kernel} {version} {_MACHINE}",
        },
        "hostname": {"": f"{name}.local", "-s": name},
        "sw_vers": {
            "": everything,
            **{f"-{key[0].lower()}{key[1:]}": value for key, value in product.items()},
            **{f"--{key[0].lower()}{key[1:]}": value for key, value in product.items()},
        },
    }


def identity(user: User) -> dict[str, str]:
    """Output of `id`; the primary group of users of a Mac is staff."""
    uid, gid = str(user.uid), str(user.account.gid)
    return {
        "": f"uid={uid}({user.name}) gid={gid}(staff) groups={gid}(staff)",
        "-u": uid,
        "-g": gid,
        "-un": user.name,
        "-u -n": user.name,
        "-gn": "staff",
        "-G": gid,
        "-Gn": "staff",
    }


@dataclass(frozen=True, slots=True)
class Sysctl:
    boot: Callable[[], str]
    variant: Variant

    def __call__(self, call: Call) -> Answer:
        flag, *keys = call.arguments or [""]
        known = {
            "hw.memsize": str(_MEMORY),
            "hw.ncpu": "10",
            "hw.model": "Mac16,10",
            "hw.machine": _MACHINE,
            "hw.optional.arm64": "1",
            "machdep.cpu.brand_string": "Apple M4",
            "iogpu.wired_limit_mb": "0",
            "kern.osrelease": self.variant.kernel,
            "kern.osproductversion": self.variant.macos,
            "kern.osversion": self.variant.build,
            "kern.bootsessionuuid": self.boot(),
        }
        if flag != "-n" or not keys or set(keys) - set(known):
            raise Refused("anything but -n and a name that is known")
        return Answer("".join(f"{known[key]}\n" for key in keys))


@dataclass(frozen=True, slots=True)
class Dscl:
    users: tuple[User, ...]

    def __call__(self, call: Call) -> Answer:
        match call.arguments:
            case ["." | "/Local/Default", "-read", path, *keys] if keys:
                name = path.removeprefix("/Users/")
            case _:
                raise Refused("anything but . -read /Users/NAME KEY")
        user = next((user for user in self.users if user.name == name), None)
        if user is None:
            error = "<dscl_cmd> DS Error: -14136 (eDSRecordNotFound)\n"
            return Answer(err=error, code=56)
        known = {
            "NFSHomeDirectory": str(user.home),
            "UniqueID": str(user.uid),
            "PrimaryGroupID": str(user.account.gid),
            "UserShell": user.identity["SHELL"],
        }
        if set(keys) - set(known):
            raise Refused(f"keys {keys}")
        return Answer("".join(f"{key}: {known[key]}\n" for key in keys))


@dataclass(frozen=True, slots=True)
class Scutil:
    name: str

    def __call__(self, call: Call) -> Answer:
        match call.arguments:
            case ["--get", "ComputerName" | "LocalHostName"]:
                return Answer(f"{self.name}\n")
            case ["--get", "HostName"]:
                return Answer("HostName: not set\n", code=1)
        raise Refused("anything but --get of a name")


def fdesetup(call: Call) -> Answer:
    match call.arguments:
        case ["isactive"]:
            return Answer("false\n", code=1)
        case ["status"]:
            return Answer("FileVault is Off.\n")
    raise Refused("anything but status and isactive")


def firewall(call: Call) -> Answer:
    """`socketfilterfw`, which a Mac has in /usr/libexec/ApplicationFirewall."""
    match call.arguments:
        case ["--getglobalstate"]:
            return Answer("Firewall is disabled. (State = 0)\n")
        case ["--getblockall"]:
            return Answer("Firewall has block all state set to disabled.\n")
    raise Refused("anything but --getglobalstate and --getblockall")


@dataclass(frozen=True, slots=True)
class Pmset:
    """Power settings: readable for all users, changed by root only."""

    file: Path

    def __call__(self, call: Call) -> Answer:
        match call.arguments:
            case ["-g"]:
                return Answer("System-wide power settings:\nCurrently in use:\n" + self._shown())
            case ["-g", "custom"]:
                return Answer("AC Power:\n" + self._shown())
            case ["-a", *pairs] if pairs and len(pairs) % 2 == 0:
                return self._set(call, pairs)
        raise Refused("anything but -g, -g custom and -a KEY VALUE")

    def _values(self) -> dict[str, int]:
        stored: dict[str, int] = json.loads(self.file.read_text()) if self.file.exists() else {}
        return {**_POWER_DEFAULTS, **stored}

    def _shown(self) -> str:
        # `disablesleep` works, but is undocumented and not listed
        shown = {key: value for key, value in self._values().items() if key != "disablesleep"}
        return "".join(f" {key:<20} {value}\n" for key, value in sorted(shown.items()))

    def _set(self, call: Call, pairs: list[str]) -> Answer:
        values = dict(zip(pairs[::2], pairs[1::2], strict=True))
        are_numbers = all(value.isdecimal() for value in values.values())
        if set(values) - set(_POWER_DEFAULTS) or not are_numbers:
            raise Refused(f"settings {values}")
        if call.uid != 0:
            return Answer(err="Must be run as root to modify settings\n", code=77)
        numbers = {key: int(value) for key, value in values.items()}
        self.file.write_text(json.dumps({**self._values(), **numbers}))
        return Answer()
