"""The lab's requirements on this machine: root, Linux, Debian packages."""

import os
import subprocess
import sys

from tests.lab.command import LabError, run

DEBIAN_PACKAGES = (
    "debian-archive-keyring", "debootstrap", "iproute2", "openssh-client", "openssh-server",
    "strace", "systemd-container",
    "g++", "nlohmann-json3-dev", "libstb-dev",
    "busybox", "fish", "mksh", "zsh",
)  # fmt: skip


def require_root() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise LabError(
            "lab hosts need Linux and root (they boot systemd in containers): "
            "run this as root; `make test` needs neither"
        )


def install_packages() -> None:
    """Install missing packages; without any, the network is not used."""
    if missing := [package for package in DEBIAN_PACKAGES if not is_installed(package)]:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", env=env)
        run("apt-get", "install", "--yes", "--no-install-recommends", *missing, env=env)


def is_installed(package: str) -> bool:
    query = ("dpkg-query", "--show", "--showformat=${db:Status-Status}", package)
    return subprocess.run(query, capture_output=True, text=True).stdout == "installed"
