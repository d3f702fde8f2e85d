"""Makes a node a simulated Mac: where the simulation is installed, and what starts it.

sshd and launchd run in mount namespaces in which /usr/bin and /usr/sbin are the Mac's; the
namespace of sshd has no /proc either. The rest of the node remains a Linux machine, which no tool
of the Mac shows."""

import shutil
from pathlib import Path

from tests.lab.base import USER

BASE = "/usr/local/libexec/mac"
AUTO_LOGIN = {f"{BASE}/state/auto-login": ""}
SOURCE = Path(__file__).parents[2] / "src/fleetsim"
_TEMPORARY = "/private/var/folders/xy/abc/T/"

_NAMESPACE = f"""\
{BASE}/host/mount --bind {BASE}/bin /usr/bin && {BASE}/host/mount --bind {BASE}/sbin /usr/sbin"""

_LAUNCHD = f"""\
[Unit]
Description=launchd of the simulated Mac
Before=ssh.service

[Service]
Type=notify
Environment=PYTHONPATH={BASE}/lib PYTHONDONTWRITEBYTECODE=1
ExecStart=/usr/bin/unshare --mount --propagation private /bin/sh -c \\
  '{_NAMESPACE} && exec {BASE}/python -m fleetsim.mac.node serve {USER}'

[Install]
WantedBy=multi-user.target
"""

_SSHD = f"""\
[Unit]
Requires=mac.service
After=mac.service

[Service]
ExecStartPre=
ExecStart=
ExecStart=/usr/bin/unshare --mount --propagation private /bin/sh -c \\
  'mkdir -p /run/sshd && {_NAMESPACE} && \\
  {BASE}/host/mount -t tmpfs -o ro,size=4k,mode=555 tmpfs /proc && exec {BASE}/host/sshd -D'
"""

# sudo of macOS keeps HOME and PATH
_SUDOERS = """\
Defaults env_reset
Defaults !always_set_home
Defaults env_keep += "HOME MAIL"
root ALL=(ALL) ALL
@includedir /etc/sudoers.d
"""

FILES = {
    "/etc/systemd/system/mac.service": _LAUNCHD,
    "/etc/systemd/system/ssh.service.d/mac.conf": _SSHD,
    "/etc/ssh/sshd_config.d/mac.conf": (
        f"UsePAM no\nSetEnv PATH=/usr/bin:/bin:/usr/sbin:/sbin TMPDIR={_TEMPORARY}\n"
    ),
    "/etc/ssh/sshrc": f"{BASE}/session-opened\n",
    "/etc/sudoers": _SUDOERS,
}


def release(macos: str) -> dict[str, str]:
    return {f"{BASE}/state/release": macos}


def setup(extra: str) -> str:
    """Shell commands of the kind. Python is for the simulation only, so it is moved out of every
    PATH."""
    return f"""
        mv /usr/bin/python3.11 {BASE}/python
        rm -f /usr/bin/python3* /etc/zsh/zshenv /etc/os-release
        usermod --shell /bin/zsh {USER}
        sed -i /pam_systemd/d /etc/pam.d/common-session
        export PYTHONPATH={BASE}/lib PYTHONDONTWRITEBYTECODE=1
        {BASE}/python -m fleetsim.mac.node install {USER} {extra}
        systemctl -q enable mac"""


def copy_simulation(root: Path) -> None:
    target = root / BASE.lstrip("/") / "lib/fleetsim"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
