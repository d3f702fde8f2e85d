"""The simulated Mac at its real paths: launchd as root, sudo, zsh, and the real Ollama."""

import plistlib

import pytest

from tests.lab.base import USER
from tests.lab.command import LabError, wait_until
from tests.lab.fixture_types import Boot, Shared
from tests.lab.lab import Lab
from tests.lab.mac import BASE
from tests.lab.node import Node
from tests.lab.ollama_build import VERSION

pytestmark = pytest.mark.host

LABEL = "dev.fleetctl.ollama"
DAEMON = f"/Library/LaunchDaemons/{LABEL}.plist"


def sh(lab: Lab, node: Node, script: str) -> str:
    return lab.ssh(node, "/bin/sh -s", stdin=script)


def refusals(node: Node) -> str:
    return (node.root / BASE.lstrip("/") / "state/refused.log").read_text()


def daemon(**keys: object) -> str:
    values = {
        "Label": LABEL,
        "ProgramArguments": ["/usr/local/bin/ollama", "serve"],
        "UserName": USER,
        "EnvironmentVariables": {"OLLAMA_KEEP_ALIVE": "7m"},
        "RunAtLoad": True,
        "KeepAlive": True,
        "StandardErrorPath": f"/home/{USER}/.ollama/logs/server.log",
        **keys,
    }
    return plistlib.dumps(values).decode()


def test_it_looks_like_a_mac_and_shows_no_linux(shared: Shared, lab: Lab) -> None:
    node = shared("mac")
    assert lab.ssh(node, "echo $0 $ZSH_NAME").endswith("zsh\n"), "the login shell"
    said = sh(lab, node, "uname -sm; sw_vers -productVersion; echo $PATH; echo $TMPDIR; ls /proc")
    assert "os-release" not in sh(lab, node, "ls /etc")
    firewall = "/usr/libexec/ApplicationFirewall/socketfilterfw --getglobalstate"
    assert sh(lab, node, firewall) == "Firewall is disabled. (State = 0)\n"
    assert said.splitlines() == [
        "Darwin arm64",
        "15.7.1",
        "/usr/bin:/bin:/usr/sbin:/sbin",
        "/private/var/folders/xy/abc/T/",
    ], "and /proc is empty"
    absent = (
        "timeout flock setsid tac nproc free ss ip getent systemctl journalctl python3 realpath"
    )
    script = f"for each in {absent}; do $each 2>/dev/null; echo $?; done"
    assert set(sh(lab, node, script).split()) == {"127"}
    assert "systemd" not in sh(lab, node, "ps -axo command")
    assert sh(lab, node, "ps -p 1 -o command=") == "/sbin/launchd\n"
    assert node.address in sh(lab, node, "ifconfig -a")
    assert refusals(node) == ""


def test_sudo_keeps_home_and_path(shared: Shared, lab: Lab) -> None:
    node = shared("mac")
    said = sh(lab, node, "sudo -n /bin/sh -c 'id -u; echo $HOME; echo $PATH'")
    assert said.splitlines() == ["0", f"/home/{USER}", "/usr/bin:/bin:/usr/sbin:/sbin"]


def test_only_root_changes_the_system(shared: Shared, lab: Lab) -> None:
    node = shared("mac")
    denied = "launchctl bootout system/com.example.x; echo $?; pmset -a sleep 0; echo $?"
    assert sh(lab, node, denied).split() == ["1", "77"]
    allowed = "sudo -n launchctl bootout system/com.example.x; echo $?; sudo -n pmset -a sleep 0"
    assert sh(lab, node, allowed).split() == ["3"]
    assert "\n sleep                0\n" in sh(lab, node, "pmset -g")
    assert sh(lab, node, "launchctl managername; sudo -n launchctl managername").split() == [
        "Background",
        "System",
    ]


def test_lsof_shows_everybody_their_own(shared: Shared, lab: Lab) -> None:
    node = shared("mac")
    listening = "lsof -nP -iTCP:22 -sTCP:LISTEN -Fc"
    assert sh(lab, node, f"{listening}; echo $?") == "1\n"
    assert "csshd" in sh(lab, node, f"sudo -n {listening}")


def test_root_reaches_the_screen_s_domain_by_asuser(boot: Boot, lab: Lab) -> None:
    node = boot("mac+mac-screen+macos-26")
    assert sh(lab, node, "sw_vers -productVersion; stat -f %Su /dev/console").split() == [
        "26.1",
        USER,
    ]
    set_there = "sudo -n launchctl asuser $(id -u) sudo -n -u ada launchctl setenv A 1"
    assert sh(lab, node, f"{set_there}; launchctl getenv A") == ""
    assert "\t\tA => 1\n" in sh(lab, node, "launchctl print gui/$(id -u)")


@pytest.mark.ollama
def test_daemon_starts_at_boot_as_its_user(boot: Boot, lab: Lab) -> None:
    node = boot("mac-installed")
    write = f"sudo -n tee {DAEMON} >/dev/null && sudo -n chmod 644 {DAEMON}"
    lab.ssh(node, write, stdin=daemon())
    sh(lab, node, f"plutil -lint {DAEMON} && sudo -n launchctl bootstrap system {DAEMON}")
    node.wait_for_ollama()
    server = sh(lab, node, "ps -p $(pgrep -x ollama) -o user=,command=").split()
    assert server == [USER, "/usr/local/bin/ollama", "serve"]
    shown = sh(lab, node, f"launchctl print system/{LABEL}")
    assert f"\tusername = {USER}\n" in shown
    assert "OLLAMA_KEEP_ALIVE:7m0s" in sh(lab, node, "cat .ollama/logs/server.log")
    assert sh(lab, node, "lsof -nP -iTCP:11434 -sTCP:LISTEN -Fn").endswith("n127.0.0.1:11434\n")
    node.power_off()
    node.start()
    node.wait()
    node.wait_for_ollama()
    assert refusals(node) == ""


@pytest.mark.ollama
def test_app_serves_while_somebody_is_at_the_screen(boot: Boot, lab: Lab) -> None:
    node = boot("mac-app")
    assert f"(version {VERSION})" in sh(lab, node, "cat .ollama/logs/server.log")
    assert sh(lab, node, "stat -f %Su /dev/console; pgrep -lx Ollama").startswith(f"{USER}\n")
    parent = "ps -p $(pgrep -x ollama) -o ppid= | tr -d ' '; pgrep -x Ollama"
    assert len(set(sh(lab, node, parent).split())) == 1
    lab.ssh(node, f"{BASE}/log-out", root=True)
    log = node.folder / "console.log"
    wait_until(lambda: not node.ollama_listens(), "Ollama goes on", log)
    with pytest.raises(LabError, match="RBSRequestErrorDomain"):
        sh(lab, node, "open -j -a Ollama --args hidden --fast-startup")
    lab.ssh(node, f"{BASE}/log-in", root=True)
    node.wait_for_ollama()
    assert refusals(node) == ""


@pytest.mark.ollama
def test_brew_runs_its_service(boot: Boot, lab: Lab) -> None:
    node = boot("mac-brew")
    brew = "/opt/homebrew/bin/brew"
    assert '"status": "started"' in sh(lab, node, f"{brew} services info ollama --json")
    write = "mkdir -p .homebrew/services; umask 022; cat >.homebrew/services/ollama.env"
    lab.ssh(node, write, stdin="OLLAMA_KEEP_ALIVE=7m\n")
    sh(lab, node, f"{brew} services restart ollama")
    node.wait_for_ollama()
    seen = sh(lab, node, "tail -n 100 /opt/homebrew/var/log/ollama.log")
    assert "OLLAMA_KEEP_ALIVE:7m0s" in seen
    assert "OLLAMA_KV_CACHE_TYPE:q8_0" in seen
