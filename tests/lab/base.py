"""The base image of all nodes: a small Debian with systemd, sshd and several shells.

It has neither curl nor Python, since fleetctl must not need them on a node."""

import inspect
from pathlib import Path

from tests.lab.cache import made
from tests.lab.command import LabError, run

SUITE = "bookworm"
USER = "ada"
USER_ID = 1000
PASSWORD = "lab-password"  # sshd accepts keys only, unless a kind changes that

PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "polkitd", "openssh-server", "sudo",
    "iproute2", "procps", "ca-certificates",
    "zsh", "fish", "tcsh", "busybox", "mksh", "ksh", "yash",
)  # fmt: skip

# not needed on a short-lived machine; masked to boot faster
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
    "fstrim.timer", "systemd-networkd.service", "systemd-networkd.socket", "console-getty.service",
    "getty@tty1.service", "systemd-journal-flush.service", "e2scrub_reap.service",
)  # fmt: skip

SSHD = """\
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
"""


def base_image() -> Path:
    return made("base", recipe(), build)


def recipe() -> str:
    return repr((SUITE, PACKAGES, MASKED, SSHD, USER, PASSWORD)) + inspect.getsource(build)


def build(root: Path) -> None:
    root.chmod(0o755)
    packages = f"--include={','.join(PACKAGES)}"
    run("debootstrap", "--variant=minbase", packages, SUITE, root, mirror())
    # fish depends on Python, and works without it.
    pythons = [name for name in installed_packages(root) if "python3" in name]
    run("chroot", root, "dpkg", "--purge", "--force-depends", *pythons)
    run("chroot", root, "useradd", "-m", "-u", str(USER_ID), "-s", "/bin/bash", USER)
    run("chroot", root, "chpasswd", stdin=f"{USER}:{PASSWORD}")
    units = root / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")
    # /run/nologin would refuse ada for a moment after sshd answers.
    (root / "etc/tmpfiles.d/systemd-nologin.conf").symlink_to("/dev/null")
    (root / "etc/ssh/sshd_config.d/lab.conf").write_text(SSHD)
    for key in root.glob("etc/ssh/ssh_host_*"):
        key.unlink()
    (root / "etc/machine-id").unlink()
    for package in root.glob("var/cache/apt/archives/*.deb"):
        package.unlink()


def installed_packages(root: Path) -> list[str]:
    return run("chroot", root, "dpkg-query", "--show", "--showformat=${binary:Package}\n").split()


def mirror() -> str:
    """The Debian mirror that this machine uses."""
    run("apt-get", "update")  # without package lists apt does not know the label of a source
    wanted = ("--format", "$(LABEL)|$(COMPONENT)|$(REPO_URI)", "Created-By: Packages")
    for line in run("apt-get", "indextargets", *wanted).splitlines():
        label, component, uri = line.split("|")
        if (label, component) == ("Debian", "main"):
            return uri
    raise LabError("no Debian mirror in the apt sources of this machine")


def python_layer() -> Path:
    """An overlay layer that adds Python, for nodes that act as the controller."""
    return made("python", recipe() + inspect.getsource(build_python), build_python)


def build_python(layer: Path) -> None:
    work, root = layer.parent / "work", layer.parent / "root"
    work.mkdir()
    root.mkdir()
    options = f"lowerdir={base_image()},upperdir={layer},workdir={work}"
    run("mount", "-t", "overlay", "overlay", "-o", options, root)
    # The base has fish without the Python it depends on: apt puts that right first.
    install = "apt-get update && apt-get -yf install && apt-get -y install python3-venv"
    in_root = ("systemd-nspawn", "--quiet", "--pipe", "--register=no", "--keep-unit", "-D", root)
    run(*in_root, "/bin/sh", "-c", install)
    run("umount", root)
