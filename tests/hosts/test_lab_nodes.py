"""The kinds of node are what their names say."""

import pytest

from tests.lab.base import PASSWORD
from tests.lab.command import LabError
from tests.lab.fixture_types import Boot, Observe, Shared
from tests.lab.kinds import KINDS
from tests.lab.lab import Lab
from tests.lab.node import Node
from tests.lab.ollama_api import ask
from tests.lab.ollama_build import VERSION

pytestmark = pytest.mark.host


# on a simulated Mac nothing shows systemd; tests/hosts/test_lab_mac.py looks at those
@pytest.mark.parametrize("kinds", [name for name, kind in KINDS.items() if not kind.mac])
def test_every_kind_boots_with_no_failed_unit(kinds: str, boot: Boot, observe: Observe) -> None:
    jump = boot("jump") if kinds == "behind-jump" else None
    host = observe(boot(kinds, jump))
    assert host.check_output("systemctl is-system-running") == "running"


@pytest.mark.ollama
@pytest.mark.parametrize(
    ("kinds", "fragment"),
    [
        ("installer", "/etc/systemd/system/ollama.service"),
        ("packaged", "/lib/systemd/system/ollama.service"),  # Debian's name for /usr/lib
    ],
)
def test_system_ollama_listens_on_loopback(
    kinds: str, fragment: str, shared: Shared, observe: Observe
) -> None:
    host = observe(shared(kinds))
    assert host.service("ollama").is_running
    assert host.service("ollama").is_enabled
    assert host.socket("tcp://127.0.0.1:11434").is_listening
    assert not host.socket("tcp://0.0.0.0:11434").is_listening
    assert host.check_output("systemctl show -p FragmentPath --value ollama") == fragment
    assert host.process.get(comm="ollama").user == "ollama"


@pytest.mark.ollama
def test_user_ollama_runs_without_a_login(shared: Shared, observe: Observe, lab: Lab) -> None:
    node = shared("user")
    host = observe(node)
    assert host.process.get(comm="ollama").user == "ada"
    assert host.file("/home/ada/.local/bin/ollama").user == "ada"
    assert not host.file("/etc/systemd/system/ollama.service").exists
    assert lab.ssh(node, "systemctl --user is-active ollama") == "active\n"


@pytest.mark.ollama
def test_foreign_settings_reach_ollama(shared: Shared, observe: Observe) -> None:
    for kinds, variable in {
        "installer+foreign-dropin": "OLLAMA_KEEP_ALIVE=10m",
        "installer+foreign-envfile": "OLLAMA_NUM_PARALLEL=2",
    }.items():
        node = shared(kinds)
        host = observe(node)
        pid = host.check_output("systemctl show -p MainPID --value ollama")
        assert variable in host.file(f"/proc/{pid}/environ").content_string.split("\0")
        assert ask(node, "/api/version") == {"version": VERSION}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "csh"])
def test_login_shell_runs_a_script_from_stdin(shell: str, boot: Boot, lab: Lab) -> None:
    said = lab.ssh(boot(shell), "/bin/sh -s", stdin="echo $SHELL; exit")
    assert said.endswith(f"/{shell}\n")


def test_no_node_has_curl_or_python(shared: Shared, observe: Observe) -> None:
    host = observe(shared("bare"))
    assert not [tool for tool in ("curl", "wget", "python3") if host.exists(tool)]


def test_noise_comes_before_the_answer_and_an_exit_swallows_it(boot: Boot, lab: Lab) -> None:
    for shell in ("bash", "zsh", "fish", "csh"):
        said = lab.ssh(boot(f"noisy+{shell}"), "/bin/sh -s", stdin="echo answer; exit")
        assert said.startswith("Welcome to the machine room.\n")
        assert "\033[2J" in said
        assert said.endswith("\nanswer\n")
    assert "answer" not in lab.ssh(boot("rc-exits"), "/bin/sh -s", stdin="echo answer; exit")


def test_sudo_is_as_the_kind_says(shared: Shared, lab: Lab) -> None:
    without = "sudo -k -n id -u"
    with_password = f"echo {PASSWORD} | sudo -k -S -p '' id -u"
    restart = "sudo -n systemctl restart ollama.service"
    assert lab.ssh(shared("bare"), without) == "0\n"
    assert lab.ssh(shared("sudo-password"), with_password) == "0\n"
    assert lab.ssh(shared("installer+sudo-limited"), restart) == ""
    for kinds, command in {
        "sudo-password": without,
        "installer+sudo-limited": with_password,
        "sudo-denied": with_password,
        "sudo-absent": with_password,
    }.items():
        with pytest.raises(LabError):
            lab.ssh(shared(kinds), command)


def test_behind_a_jump_host_only_the_jump_host_leads(boot: Boot, lab: Lab) -> None:
    jump = boot("jump")
    node = boot("behind-jump", jump=jump)
    assert lab.ssh(node, "hostname") == f"{node.name}\n"
    with pytest.raises(LabError, match="timed out"):
        lab.ssh_directly(node)


def test_ipv6_only_node_has_no_ipv4(shared: Shared, observe: Observe, lab: Lab) -> None:
    node = shared("ipv6-only")
    assert ":" in node.address
    assert "inet " not in observe(node).check_output("ip address show eth0")
    assert lab.ssh(node, "hostname") == f"{node.name}\n"


def test_weak_ssh_is_refused_by_a_client_of_today(shared: Shared, lab: Lab) -> None:
    node = shared("weak-ssh")
    with pytest.raises(LabError, match="no matching"):
        lab.ssh_directly(node)
    assert lab.ssh(node, "hostname") == f"{node.name}\n"


@pytest.mark.slow
def test_controller_installs_offline_and_runs_user_services(
    boot: Boot, observe: Observe, lab: Lab
) -> None:
    controller = boot("controller")
    host = observe(controller)
    assert host.mount_point("/srv/fleetctl").exists
    assert "ro" in host.mount_point("/srv/fleetctl").options
    assert host.file("/srv/fleetctl/requirements-lab.in").exists
    lab.ssh(controller, "python3 -m venv venv")
    lab.ssh(controller, "venv/bin/pip install --no-index --find-links /srv/wheels pytest")
    assert lab.ssh(controller, "systemctl --user is-system-running") == "running\n"


def test_node_comes_back_after_power_off_and_power_cut(node: Node, lab: Lab) -> None:
    for stop in (node.power_off, node.cut_power):
        lab.ssh(node, f"echo {stop.__name__} >note")
        stop()
        node.start()
        node.wait()
        assert lab.ssh(node, "cat note") == f"{stop.__name__}\n"
