"""Simulated Macs: every way in which Ollama runs there, and what becomes of it."""

import plistlib
from pathlib import Path
from typing import Any

import pytest

from fleetsim.mac import REPORT
from fleetsim.mac.mac import Mac
from tests.conftest import ROOT
from tests.fleet_fixtures import Project, snapshot
from tests.sim.remote import answering, connect, eventually, execute, until_answering

QUICK = ("--yes", "--health-timeout", "16", "--settle", "0.5")
AGENT = "Library/LaunchAgents/dev.fleetctl.ollama.plist"


def environment(mac: Mac) -> dict[str, str]:
    found: dict[str, Any] = plistlib.loads((mac.home / AGENT).read_bytes())
    return dict(found["EnvironmentVariables"])


@pytest.mark.slow
@pytest.mark.parametrize("macos", ["14", "15", "26"])
def test_an_agent_is_made_changed_and_taken_away(project: Project, macos: str) -> None:
    mac = project.add_mac("mini", ollama="installed", macos=macos)
    before = snapshot(mac.home).keys()
    project.fleetctl("provision", "mini", *QUICK).exits(0)
    assert environment(mac)["OLLAMA_KEEP_ALIVE"] == "-1"
    project.fleetctl("check").exits(0)
    project.set("mini", keep_alive="2h")
    assert "OLLAMA_KEEP_ALIVE -1 (forever) → 2h" in project.fleetctl("apply", *QUICK).exits(0).out
    project.fleetctl("check").exits(0)
    project.fleetctl("remove", "mini", *QUICK).exits(0)
    assert not (mac.home / AGENT).exists()
    made_by_ollama = {path for path in snapshot(mac.home) if path.startswith(".ollama")}
    assert snapshot(mac.home).keys() - made_by_ollama == before - made_by_ollama


@pytest.mark.slow
def test_models_are_deleted_while_the_agent_that_is_taken_away_still_serves(
    project: Project,
) -> None:
    mac = project.add_mac("mini", ollama="installed")
    project.write(models={"m": {"node": "mini", "ollama_model": "tiny"}})
    project.fleetctl("apply", *QUICK).exits(0)
    outcome = project.fleetctl("remove", "mini", "--models", *QUICK).exits(0)
    assert "mini: done: delete tiny:latest" in outcome.err
    assert not answering(mac)


def test_an_agent_without_anybody_at_the_screen_runs_in_the_background(project: Project) -> None:
    mac = project.add_mac("mini", ollama="installed", logged_in=False)
    project.fleetctl("apply", *QUICK).exits(0)
    project.fleetctl("check").exits(0)
    assert answering(mac)


FILES = {
    "agent": AGENT,
    "app": ".config/fleetctl/ollama-app.sh",
    "brew": ".homebrew/services/ollama.env",
}


def server(mac: Mac) -> list[int]:
    """The pids of whatever serves there."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mac.processes()}
    return [pid for pid, command in commands.items() if command.endswith(b"\0serve\0")]


@pytest.mark.slow
@pytest.mark.parametrize("mode", FILES)
def test_every_mode_from_the_first_apply_to_the_last(project: Project, mode: str) -> None:
    mac = project.add_mac("mini", ollama=mode)
    until_answering(mac)
    file = mac.home / FILES[mode]
    project.fleetctl("apply", *QUICK).exits(0)
    before, pids = file.read_text(), server(mac)
    assert "1 ok" in project.fleetctl("apply", *QUICK).exits(0).out
    assert server(mac) == pids

    file.write_text(before.replace("-1", "1m0s"))  # somebody's hand
    assert "OLLAMA_KEEP_ALIVE" in project.fleetctl("check").exits(3).out
    project.fleetctl("apply", *QUICK).exits(0)
    assert file.read_text() == before

    project.set("mini", models_dir="/Volumes/Models")
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "mini: rolled back: Ollama" in outcome.out
    assert "permission denied" in outcome.out
    assert file.read_text() == before
    project.set("mini", models_dir=None)
    until_answering(mac)
    project.fleetctl("check").exits(0)

    mac.reboot()
    mac.log_in()
    eventually(lambda: project.fleetctl("check").code == 0, 30)


def test_a_switch_of_the_app_that_wins_is_named_before_anything_is_written(
    project: Project,
) -> None:
    mac = project.add_mac("mini", ollama="app", app_settings={"expose": 1})
    until_answering(mac)
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "the switch 'Expose Ollama to the network' in the settings of Ollama.app sets" in out
    assert not (mac.home / FILES["app"]).exists()


def test_the_app_without_anybody_at_the_screen_is_explained(project: Project) -> None:
    project.add_mac("mini", ollama="app", logged_in=False)
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "Ollama.app needs a user logged in at the screen" in out
    assert "ollama.service: daemon" in out


def test_a_homebrew_that_cannot_give_variables_is_explained(project: Project) -> None:
    mac = project.add_mac("mini", ollama="brew", brew="5.1.0")
    until_answering(mac)
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "Homebrew 5.1.0 cannot set variables for a service" in out


@pytest.mark.slow
def test_a_variable_that_does_not_reach_the_app_is_no_success(project: Project) -> None:
    """As if `launchctl setenv` had been said in the SSH session: written, and never reached."""
    mac = project.add_mac("mini", ollama="app")
    until_answering(mac)
    templates = project.fleetctl.folder / "templates" / "launchd"
    templates.mkdir(parents=True)
    text = (ROOT / "templates/launchd/app-env.sh").read_text()
    (templates / "app-env.sh").write_text(text.replace("launchctl setenv", "true"))
    outcome = project.fleetctl("apply", *QUICK).exits(5)
    assert "mini: rolled back: after the restart it runs with OLLAMA_KEEP_ALIVE" in outcome.out
    assert not (mac.home / FILES["app"]).exists()
    until_answering(mac)


def test_an_agent_that_never_was_is_not_left_behind(project: Project) -> None:
    mac = project.add_mac("mini", ollama="installed")
    project.set("mini", models_dir="/Volumes/Models")
    project.fleetctl("apply", *QUICK).exits(5)
    assert not (mac.home / AGENT).exists()
    assert not answering(mac)


def test_a_server_started_by_hand_is_explained_and_left_alone(project: Project) -> None:
    mac = project.add_mac("mini", ollama="manual")
    until_answering(mac)
    out = project.fleetctl("apply", *QUICK).exits(5).out
    assert "Ollama was started by hand" in out
    assert answering(mac)


@pytest.mark.slow
def test_macs_and_linux_machines_share_one_inventory(project: Project) -> None:
    project.add_mac("mini", ollama="agent")
    project.add("box")
    gone = project.add_mac("gone", ollama="agent")
    project.fleetctl("apply", *QUICK).exits(0)
    gone.stop()
    for node in ("mini", "box", "gone"):
        project.set(node, keep_alive="4h")
    outcome = project.fleetctl("apply", *QUICK).exits(4)
    assert "1 unreachable" in outcome.out
    assert "2 changed" in outcome.out
    project.fleetctl("check", "--limit", "!gone").exits(0)


@pytest.mark.slow
def test_fault_49_a_job_that_goes_slowly_is_waited_for_and_brought_in_again(
    project: Project,
) -> None:
    """`bootout` says yes at once, and `bootstrap` says 5 until the old server is really gone."""
    mac = project.add_mac("mini", ollama="agent")
    mac.behave(ignore_term=True)
    project.fleetctl("apply", *QUICK).exits(0)
    for hours in ("2h", "3h"):
        project.set("mini", keep_alive=hours)
        project.fleetctl("apply", *QUICK).exits(0)
        project.fleetctl("check").exits(0)


def test_a_mac_that_may_sleep_is_kept_awake_where_the_inventory_says_so(project: Project) -> None:
    project.add_mac("mini", ollama="agent")
    project.nodes["mini"]["power"] = {"sleep": "never"}
    project.write()
    out = project.fleetctl("check").exits(3).out
    assert "mini: run: never sleep" in out


def test_report_script_asks_only_what_a_mac_can_answer(project: Project) -> None:
    mac = project.add_mac("mini", ollama="app")
    with connect(mac) as client:
        out = execute(client, REPORT.read_text()).out
    assert "## macOS release" in out
    assert "ProductVersion" in out
    assert out.count("\n(exit ") == REPORT.read_text().count('\nask "')


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "more"), [("brew", {"brew": "5.1.0"}), ("app", {})])
def test_takeover_makes_room_for_our_agent_until_it_fails_or_is_removed(
    project: Project, mode: str, more: dict[str, str]
) -> None:
    mac = project.add_mac("mini", ollama=mode, **more)
    until_answering(mac)
    before = server(mac)
    project.set("mini", service="agent")
    assert "another Ollama serves here" in project.fleetctl("apply", *QUICK).exits(5).out
    assert server(mac) == before

    project.set("mini", takeover=True, models_dir="/Volumes/Models")
    assert "mini: rolled back" in project.fleetctl("apply", *QUICK).exits(5).out
    until_answering(mac)
    assert not (mac.home / AGENT).exists()

    project.set("mini", models_dir=None)
    assert "done: stop what runs Ollama now" in project.fleetctl("apply", *QUICK).exits(0).err
    project.fleetctl("check").exits(0)
    mac.reboot()
    mac.log_in()
    eventually(lambda: project.fleetctl("check").code == 0, 30)

    project.set("mini", service=mode, takeover=False)  # what was changed goes back all the same
    assert "done: start what ran Ollama" in project.fleetctl("remove", "mini", *QUICK).exits(0).err
    assert not (mac.home / AGENT).exists()
    for _ in range(2):
        until_answering(mac)
        mac.reboot()
        mac.log_in()
