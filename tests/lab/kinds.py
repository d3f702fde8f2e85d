"""The kinds of node, as data: how the base is changed before it boots.

A kind is selected by name, and names can be combined: `installer+zsh+sudo-password`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from tests.lab import mac
from tests.lab.base import USER
from tests.lab.command import LabError


@dataclass(frozen=True, slots=True)
class Kind:
    about: str
    files: Mapping[str, str] = field(default_factory=dict)  # files in a home belong to the user
    setup: str = ""  # shell commands, run as root in the node's files before it boots
    ollama: str = ""  # path of the server's binary; empty if not installed
    ipv4: bool = True
    sees_controller: bool = True
    host_key: str = ""
    controller: bool = False  # has Python, the checkout and the wheel house
    mac: bool = False  # hides that it is a Linux machine
    serves: bool = True  # Ollama, if installed, runs from boot

    def __add__(self, other: "Kind") -> "Kind":
        return Kind(
            about=f"{self.about}; {other.about}",
            files={**self.files, **other.files},
            setup=f"{self.setup}\n{other.setup}",
            ollama=other.ollama or self.ollama,
            ipv4=self.ipv4 and other.ipv4,
            sees_controller=self.sees_controller and other.sees_controller,
            host_key=other.host_key or self.host_key,
            controller=self.controller or other.controller,
            mac=self.mac or other.mac,
            serves=self.serves and other.serves,
        )


def kind_named(names: str) -> Kind:
    if unknown := set(names.split("+")) - set(KINDS):
        raise LabError(f"unknown kinds of node: {unknown}; known: {', '.join(KINDS)}")
    return reduce(Kind.__add__, (KINDS[name] for name in ("sudo-free", *names.split("+"))))


def unit(binary: str) -> str:
    """The unit that Ollama's installer writes."""
    return f"""\
[Unit]
Description=Ollama Service
After=network-online.target

[Service]
ExecStart={binary} serve
User=ollama
Group=ollama
Restart=always
RestartSec=3
Environment="PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

[Install]
WantedBy=default.target
"""


USER_UNIT = """\
[Unit]
Description=Ollama Service

[Service]
ExecStart=%h/.local/bin/ollama serve
Restart=always
RestartSec=3

[Install]
WantedBy=default.target
"""

DROP_INS = "/etc/systemd/system/ollama.service.d"

NOISE = r"""
echo "Welcome to the machine room."
printf '\033[2J\033[1;31mred\033[0m\007\r\n'
echo "and on stderr" >&2
"""


def rc_files(text: str) -> dict[str, str]:
    names = (".bashrc", ".profile", ".zshenv", ".zshrc", ".tcshrc", ".config/fish/config.fish")
    # csh has no >&2 for stderr; the rest is valid in every shell
    return {
        f"/home/{USER}/{name}": text.replace(" >&2", "") if name == ".tcshrc" else text
        for name in names
    }


STRICT = "set -e\nset -u\nalias cat=false printf=false ls=false\nexport ENV=/nowhere\ncd /\n"
STRICT_ELSEWHERE = "alias cat false\nalias printf false\nalias ls false\ncd /\n"


def strict_files() -> dict[str, str]:
    """Startup files that make a shell fail early, in the syntax of each shell."""
    return {
        path: STRICT_ELSEWHERE if path.endswith((".tcshrc", ".fish")) else STRICT
        for path in rc_files("")
    }


def login_shell(path: str) -> Kind:
    return Kind(f"login shell {path}", setup=f"usermod --shell {path} {USER}")


def sudo_rule(about: str, rule: str) -> Kind:
    return Kind(about, files={"/etc/sudoers.d/lab": f"{rule}\n"})


def simulated_mac(about: str, extra: str = "", ollama: str = "", *, serves: bool = False) -> Kind:
    """With `serves`, a user is logged in at the screen from boot."""
    return Kind(
        f"simulated Mac: {about}",
        files={**mac.FILES, **(mac.AUTO_LOGIN if serves else {})},
        setup=mac.setup(extra),
        ollama=ollama,
        mac=True,
        serves=serves,
    )


KINDS: Mapping[str, Kind] = {
    "bare": Kind("no Ollama"),
    "installer": Kind(
        "Ollama installed by its installer: system unit, loopback only",
        files={"/etc/systemd/system/ollama.service": unit("/usr/local/bin/ollama")},
        setup=f"""
            useradd -r -s /bin/false -U -m -d /usr/share/ollama ollama
            usermod -a -G video ollama
            usermod -a -G ollama {USER}
            systemctl -q enable ollama""",
        ollama="/usr/local/bin/ollama",
    ),
    "packaged": Kind(
        "Ollama from a distribution package: unit under /usr/lib",
        files={"/usr/lib/systemd/system/ollama.service": unit("/usr/bin/ollama")},
        setup="""
            useradd -r -s /usr/sbin/nologin -U -m -d /var/lib/ollama ollama
            systemctl -q enable ollama""",
        ollama="/usr/bin/ollama",
    ),
    "user": Kind(
        "Ollama as a service of the user, who lingers",
        files={f"/home/{USER}/.config/systemd/user/ollama.service": USER_UNIT},
        setup=f"""
            wants=/home/{USER}/.config/systemd/user/default.target.wants
            install -d -o {USER} -g {USER} $wants
            ln -s ../ollama.service $wants/
            install -D /dev/null /var/lib/systemd/linger/{USER}""",
        ollama=f"/home/{USER}/.local/bin/ollama",
    ),
    "foreign-dropin": Kind(
        "settings made with `systemctl edit`",
        files={
            f"{DROP_INS}/override.conf": (
                '[Service]\nEnvironment="OLLAMA_HOST=0.0.0.0:11434"\n'
                'Environment="OLLAMA_KEEP_ALIVE=10m"\n'
            )
        },
    ),
    "foreign-envfile": Kind(
        "settings in an environment file not written by fleetctl",
        files={
            f"{DROP_INS}/10-site.conf": "[Service]\nEnvironmentFile=/etc/default/ollama\n",
            "/etc/default/ollama": "OLLAMA_HOST=0.0.0.0:11434\nOLLAMA_NUM_PARALLEL=2\n",
        },
    ),
    "bash": login_shell("/bin/bash"),
    "zsh": login_shell("/bin/zsh"),
    "fish": login_shell("/usr/bin/fish"),
    "csh": login_shell("/bin/csh"),
    "noisy": Kind("rc files that print text and escape codes", files=rc_files(NOISE)),
    "rc-exits": Kind("rc files that print and then exit 0", files=rc_files(NOISE + "exit 0\n")),
    "rc-strict": Kind("rc files with `set -e`, aliases and a change of folder", strict_files()),
    "banner": Kind(
        "a banner before the login and a message of the day, both with escape codes",
        files={
            "/etc/motd": "\x1b[2J\x1b[31mToday is a good day.\x07\n",
            "/etc/ssh/sshd_config.d/banner.conf": "Banner /etc/motd\nPrintMotd yes\n",
        },
    ),
    "sudo-free": sudo_rule("sudo without a password", f"{USER} ALL=(ALL) NOPASSWD: ALL"),
    "sudo-password": sudo_rule("sudo asks for the password", f"{USER} ALL=(ALL) ALL"),
    "sudo-limited": sudo_rule(
        "sudo allows one restart and nothing else",
        f"{USER} ALL=(root) NOPASSWD: /usr/bin/systemctl restart ollama.service",
    ),
    "sudo-denied": sudo_rule("sudo is installed, this user may not use it", "# no rule"),
    "sudo-absent": Kind("no sudo at all", setup="rm /usr/bin/sudo /etc/sudoers.d/lab"),
    "jump": Kind("a jump host: only an SSH server"),
    "behind-jump": Kind("not reachable directly from the controller", sees_controller=False),
    "ipv6-only": Kind("has no IPv4 address", ipv4=False),
    # sshd uses the first value that it reads, and lab.conf has `no`
    "password-login": Kind(
        "sshd also accepts passwords",
        files={"/etc/ssh/sshd_config.d/first.conf": "PasswordAuthentication yes\n"},
    ),
    "keyboard-interactive": Kind(
        "sshd asks for the password by keyboard-interactive",
        files={"/etc/ssh/sshd_config.d/first.conf": "KbdInteractiveAuthentication yes\n"},
    ),
    "weak-ssh": Kind(
        "supports only algorithms that current clients refuse",
        files={
            "/etc/ssh/sshd_config.d/weak.conf": (
                "KexAlgorithms diffie-hellman-group14-sha1\nHostKeyAlgorithms ssh-rsa\n"
                "Ciphers aes128-cbc\nMACs hmac-sha1\n"
            )
        },
        host_key="rsa",
    ),
    "controller": Kind(
        "a controller: Python, user services, the checkout and a wheel house",
        setup=f"install -D /dev/null /var/lib/systemd/linger/{USER}",
        controller=True,
    ),
    "mac": simulated_mac("no Ollama, no login at the screen"),
    "mac-installed": simulated_mac("Ollama installed, not running", ollama="/usr/local/bin/ollama"),
    "mac-app": simulated_mac(
        "Ollama.app", "app", "/Applications/Ollama.app/Contents/Resources/ollama", serves=True
    ),
    "mac-brew": simulated_mac(
        "Ollama from Homebrew", "brew", "/opt/homebrew/opt/ollama/bin/ollama", serves=True
    ),
    # for combination with one of these
    "mac-screen": Kind("a user is logged in at the screen from boot", files=mac.AUTO_LOGIN),
    "macos-14": Kind("behaves like macOS 14", files=mac.release("14")),
    "macos-26": Kind("behaves like macOS 26", files=mac.release("26")),
}
