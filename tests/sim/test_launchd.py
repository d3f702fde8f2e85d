"""launchd of a simulated Mac. Each test covers a statement of docs/macos.md."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fleetsim.fleet import Fleet
from fleetsim.mac.mac import Mac
from tests.sim.mac_machine import JOB, LABEL, bootstrap, field, plist
from tests.sim.remote import (
    Run,
    alive,
    connect,
    environment_of,
    eventually,
    execute,
    until_answering,
)


@pytest.fixture
def machine(fleet: Fleet) -> Mac:
    return fleet.mac("mini", ollama="absent")


@pytest.fixture
def away(fleet: Fleet) -> Mac:
    """A Mac without a login at the screen."""
    return fleet.mac("mini", ollama="absent", logged_in=False)


@pytest.fixture
def run_away(away: Mac) -> Iterator[Run]:
    with connect(away) as client:
        yield lambda script: execute(client, script)


class TestBootstrap:
    def test_starts_the_job_with_the_environment_of_its_plist(self, run: Run, machine: Mac) -> None:
        plist(machine, EnvironmentVariables={"A": "a b"})
        assert bootstrap(run) == 0
        found = environment_of(field(run, "pid"))
        assert (found["A"], found["XPC_SERVICE_NAME"]) == ("a b", JOB)
        assert (found["HOME"], found["USER"]) == (str(machine.home), "ada")
        assert "SSH_CONNECTION" not in found

    def test_loaded_label_is_error_5(self, run: Run, machine: Mac) -> None:
        plist(machine)
        bootstrap(run)
        again = run(f"launchctl bootstrap gui/$(id -u) Library/LaunchAgents/{JOB}.plist")
        assert again.code == 5
        assert again.err == (
            "Bootstrap failed: 5: Input/output error\n"
            "Try re-running the command as root for richer errors.\n"
        )

    def test_loaded_label_may_be_error_37(self, run: Run, machine: Mac) -> None:
        machine.vary(already_loaded=37)
        plist(machine)
        assert (bootstrap(run), bootstrap(run)) == (0, 37)

    def test_agent_without_background_does_not_load_outside_the_screen(
        self, run: Run, machine: Mac
    ) -> None:
        plist(machine)
        assert bootstrap(run, "user") == 5
        machine.vary(wrong_session=134)
        assert bootstrap(run, "user") == 134
        assert bootstrap(run, "gui") == 0

    @pytest.mark.parametrize("sessions", ["Background", ["Aqua", "Background"]])
    def test_agent_with_background_loads_in_user(
        self, run: Run, machine: Mac, sessions: object
    ) -> None:
        plist(machine, LimitLoadToSessionType=sessions)
        assert bootstrap(run, "user") == 0
        assert run(f"launchctl print gui/$(id -u)/{JOB}").code == 113, "domains are separate"

    @pytest.mark.parametrize("code", [5, 119])
    def test_disabled_label_is_refused_until_it_is_enabled(
        self, run: Run, machine: Mac, code: int
    ) -> None:
        machine.vary(disabled=code)
        plist(machine)
        assert run(f"launchctl disable gui/$(id -u)/{JOB}").code == 0
        assert bootstrap(run) == code
        assert run(f"launchctl enable user/$(id -u)/{JOB}").code == 0, (
            "gui and user share the store"
        )
        assert bootstrap(run) == 0

    def test_plist_that_others_may_write_is_refused(self, run: Run, machine: Mac) -> None:
        plist(machine).chmod(0o664)
        assert bootstrap(run) == 5
        machine.vary(bad_mode=122)
        assert bootstrap(run) == 122
        run(f"chmod 600 Library/LaunchAgents/{JOB}.plist")
        assert bootstrap(run) == 0

    def test_broken_and_missing_plists_are_error_5(self, run: Run, machine: Mac) -> None:
        assert bootstrap(run) == 5
        plist(machine).write_text("<plist><dict>")
        assert bootstrap(run) == 5

    def test_system_domain_is_changed_by_root_only(self, run: Run, machine: Mac) -> None:
        plist(machine)
        assert run(f"launchctl bootstrap system Library/LaunchAgents/{JOB}.plist").code == 5
        out = run("launchctl bootout system/com.apple.x")
        assert (out.code, out.err) == (1, "Boot-out failed: 1: Operation not permitted\n")
        assert run("launchctl print system").code == 0, "readable for all users"

    def test_job_may_stay_idle_until_it_is_kickstarted(self, run: Run, machine: Mac) -> None:
        machine.vary(stays_idle=True)
        plist(machine, KeepAlive=True)
        assert bootstrap(run) == 0
        assert (field(run, "state"), field(run, "pid")) == ("not running", "")
        assert field(run, "last exit code") == "(never exited)"
        run(f"launchctl kickstart gui/$(id -u)/{JOB}")
        assert field(run, "state") == "running"

    def test_output_is_appended(self, run: Run, machine: Mac) -> None:
        output = machine.home / f"{JOB}.out"
        output.write_text("before\n")
        machine.own(output)
        plist(machine, script="echo after")
        bootstrap(run)
        eventually(lambda: output.read_text() == "before\nafter\n")

    @pytest.mark.parametrize("path", ["missing/folder/log", "locked/log"])
    def test_job_whose_log_cannot_be_opened_never_runs(
        self, run: Run, machine: Mac, path: str
    ) -> None:
        run("mkdir locked; chmod 500 locked")
        plist(machine, StandardErrorPath=str(machine.home / path))
        assert bootstrap(run) == 0
        assert (field(run, "pid"), field(run, "last exit code")) == ("", "78: EX_CONFIG")
        run("chmod 700 locked")

    def test_username_of_an_agent_is_ignored(self, run: Run, machine: Mac) -> None:
        plist(machine, UserName="other")
        assert bootstrap(run) == 0
        assert field(run, "state") == "running"

    def test_system_program_is_found_by_its_path(self, run: Run, machine: Mac) -> None:
        plist(machine, ProgramArguments=["/bin/launchctl", "setenv", "A", "1"])
        bootstrap(run)
        eventually(lambda: "\t\tA => 1\n" in run("launchctl print gui/$(id -u)").out)


class TestBootout:
    def test_returns_immediately_and_keeps_the_label_while_the_job_drains(
        self, run: Run, machine: Mac
    ) -> None:
        machine.vary(exit_seconds=3)
        plist(machine, script="trap '' TERM; true >~/trapped; while :; do sleep 0.1; done")
        bootstrap(run)
        pid = int(field(run, "pid"))
        eventually((machine.home / "trapped").exists)
        assert run(f"launchctl bootout gui/$(id -u)/{JOB}").code == 0
        assert field(run, "state") == "SIGTERMed"
        assert bootstrap(run) == 5, "and loads no job"
        eventually(lambda: run(f"launchctl print gui/$(id -u)/{JOB}").code == 113)
        assert not alive(pid), "KILL comes after the exit timeout"
        assert bootstrap(run) == 0

    def test_unknown_label_is_3_and_its_path_5(self, run: Run, machine: Mac) -> None:
        file = plist(machine)
        by_label = run(f"launchctl bootout gui/$(id -u)/{JOB}")
        assert (by_label.code, by_label.err) == (3, "Boot-out failed: 3: No such process\n")
        assert run(f"launchctl bootout gui/$(id -u) {file}").code == 5
        bootstrap(run)
        assert run(f"launchctl bootout gui/$(id -u) {file}").code == 0

    def test_wait_requires_macos_26(self, run: Run, machine: Mac) -> None:
        plist(machine)
        bootstrap(run)
        refused = run(f"launchctl bootout --wait gui/$(id -u)/{JOB}")
        assert refused.code == 64
        assert refused.err.startswith("Unrecognized target specifier.\n")
        assert field(run, "state") == "running"
        machine.vary(bootout_wait=True)
        assert run(f"launchctl bootout --wait gui/$(id -u)/{JOB}").code == 0
        assert run(f"launchctl print gui/$(id -u)/{JOB}").code == 113

    def test_slow_job_may_be_error_36(self, run: Run, machine: Mac) -> None:
        machine.vary(bootout=36)
        plist(machine)
        bootstrap(run)
        assert run(f"launchctl bootout gui/$(id -u)/{JOB}").code == 36


class TestKickstart:
    def test_reuses_the_definition_that_is_loaded(self, run: Run, machine: Mac) -> None:
        plist(machine, EnvironmentVariables={"A": "old"}, ThrottleInterval=1)
        bootstrap(run)
        before = field(run, "pid")
        plist(machine, EnvironmentVariables={"A": "new"}, ThrottleInterval=1)
        time.sleep(0.1)
        printed = run(f"launchctl kickstart -kp gui/$(id -u)/{JOB}").out.strip()
        assert printed == field(run, "pid") != before
        assert environment_of(printed)["A"] == "old"
        run(f"launchctl bootout gui/$(id -u)/{JOB}")
        eventually(lambda: bootstrap(run) == 0)
        assert environment_of(field(run, "pid"))["A"] == "new"

    def test_running_job_is_left_alone_without_k(self, run: Run, machine: Mac) -> None:
        plist(machine)
        bootstrap(run)
        before = field(run, "pid")
        assert run(f"launchctl kickstart gui/$(id -u)/{JOB}").code == 0
        assert field(run, "pid") == before

    def test_label_that_is_not_loaded_is_113(self, run: Run, machine: Mac) -> None:
        for verb in ("print", "kickstart -k"):
            result = run(f"launchctl {verb} gui/$(id -u)/{JOB}")
            text = f'Could not find service "{JOB}" in domain for user gui: {machine.uid}\n'
            assert (result.code, result.err) == (113, text)
        machine.vary(bad_request=True)
        assert run(f"launchctl print gui/$(id -u)/{JOB}").err == f"Bad request.\n{text}"

    def test_waits_for_the_throttle(self, run: Run, machine: Mac) -> None:
        machine.vary(pace=1.0)
        plist(machine)
        bootstrap(run)
        run(f"launchctl kickstart -k gui/$(id -u)/{JOB}")
        assert field(run, "state") == "spawn scheduled"
        assert field(run, "last terminating signal") == "Terminated: 15"
        machine.vary(kickstart_waits=False)
        run(f"launchctl kickstart gui/$(id -u)/{JOB}")
        assert field(run, "state") == "running", "according to another source"


class TestKeepAlive:
    def test_killed_job_is_restarted(self, run: Run, machine: Mac) -> None:
        plist(machine, KeepAlive=True, RunAtLoad=None)
        bootstrap(run)
        before = field(run, "pid")
        os.kill(int(before), signal.SIGKILL)
        eventually(lambda: field(run, "pid") not in ("", before))
        assert field(run, "runs") == "2"

    def test_job_without_keep_alive_stays_loaded_after_its_end(
        self, run: Run, machine: Mac
    ) -> None:
        plist(machine, script="exit 3")
        bootstrap(run)
        eventually(lambda: field(run, "last exit code") == "3")
        assert field(run, "state") == "not running"
        listed = run("launchctl print gui/$(id -u)").out
        assert f"\t\t       0      3 \t{JOB}\n" in listed

    def test_restarts_are_throttled_and_never_stop(self, run: Run, machine: Mac) -> None:
        machine.vary(pace=0.01)
        plist(machine, script="exit 1", KeepAlive=True)
        bootstrap(run)
        eventually(lambda: int(field(run, "successive crashes") or 0) >= 3)
        assert field(run, "state") == "spawn scheduled"
        first = int(field(run, "runs"))
        eventually(lambda: int(field(run, "runs")) > first)

    def test_death_of_a_job_kills_its_process_group(self, run: Run, machine: Mac) -> None:
        plist(machine, script="sleep 600 & echo $!; wait")
        bootstrap(run)
        output = machine.home / f"{JOB}.out"
        eventually(lambda: output.read_text() != "")
        child = int(output.read_text())
        os.kill(int(field(run, "pid")), signal.SIGKILL)
        eventually(lambda: not alive(child))


class TestDomains:
    def test_gui_domain_needs_a_login_at_the_screen(self, run_away: Run, away: Mac) -> None:
        plist(away)
        shown = run_away("launchctl print gui/$(id -u)")
        assert (shown.code, "Domain does not support specified action" in shown.err) == (125, True)
        assert bootstrap(run_away) == 125
        assert run_away("stat -f %Su /dev/console").out == "root\n"
        assert run_away("launchctl print user/$(id -u)").code == 0, "any login opens it"

    @pytest.mark.parametrize("code", [112, 5, 0])
    def test_error_codes_without_a_gui_domain_vary(
        self, run_away: Run, away: Mac, code: int
    ) -> None:
        away.vary(no_gui=code)
        plist(away)
        assert bootstrap(run_away) == code, "also 0, without effect"
        shown = run_away(f"launchctl print gui/$(id -u)/{JOB}")
        assert shown.code == (code or 112)

    def test_login_loads_agents_and_logout_ends_them(self, run_away: Run, away: Mac) -> None:
        plist(away)
        away.log_in()
        pid = int(field(run_away, "pid"))
        assert run_away("stat -f %u /dev/console").out == f"{away.uid}\n"
        away.log_out()
        assert not alive(pid)
        assert run_away("launchctl print gui/$(id -u)").code == 125
        assert run_away("launchctl print user/$(id -u)").code == 0

    def test_background_agent_starts_with_the_first_login_over_ssh(self, away: Mac) -> None:
        plist(away, LimitLoadToSessionType=["Aqua", "Background"])
        with connect(away) as client:
            target = f"user/$(id -u)/{JOB}"
            eventually(lambda: execute(client, f"launchctl print {target}").code == 0)
            away.log_in()
            gui = f"launchctl print gui/$(id -u)/{JOB}"
            assert execute(client, gui).code == 113, "not a second time"
        time.sleep(0.1)
        assert away.processes(), "the user's domain stays after the session"

    def test_login_may_load_a_background_agent_twice(self, away: Mac) -> None:
        away.vary(loads_twice=True)
        plist(away, LimitLoadToSessionType=["Aqua", "Background"])
        with connect(away) as client:
            away.log_in()
            for domain in ("gui", "user"):
                shown = execute(client, f"launchctl print {domain}/$(id -u)/{JOB}")
                assert shown.code == 0

    def test_symlinked_plist_is_ignored_at_a_login(self, run_away: Run, away: Mac) -> None:
        file = plist(away)
        run_away(f"mv {file} job.plist; ln -s $HOME/job.plist {file}")
        away.log_in()
        assert run_away(f"launchctl print gui/$(id -u)/{JOB}").code == 113
        assert bootstrap(run_away) == 0

    def test_reboot_and_login_bring_agents_back(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", models=["tiny"])
        until_answering(machine)
        machine.reboot()
        assert machine.processes() == []
        machine.log_in()
        until_answering(machine)
        machine.reboot()
        with connect(machine) as client:
            assert execute(client, f"launchctl disable gui/$(id -u)/{LABEL}").code == 0
        machine.log_in()
        assert machine.processes() == [], "disabled labels stay disabled"

    def test_auto_login_starts_agents_after_a_reboot(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", auto_login=True)
        machine.reboot()
        until_answering(machine)

    def test_manager_is_background_over_ssh_and_aqua_in_a_job(self, run: Run, machine: Mac) -> None:
        assert run("launchctl managername").out == "Background\n"
        plist(machine, script="launchctl managername")
        bootstrap(run)
        eventually(lambda: (machine.home / f"{JOB}.out").read_text() == "Aqua\n")

    def test_list_shows_the_caller_s_own_domain(self, run: Run, machine: Mac) -> None:
        plist(machine)
        bootstrap(run)
        assert run("launchctl list").out == "PID\tStatus\tLabel\n"
        missing = run(f"launchctl list {JOB}")
        text = f'Could not find service "{JOB}" in domain for port\n'
        assert (missing.code, missing.err) == (113, text)
        plist(machine, "com.example.other", LimitLoadToSessionType="Background")
        bootstrap(run, "user", "com.example.other")
        assert run("launchctl list").out.endswith("\t0\tcom.example.other\n")
        assert '\t"PID" = ' in run("launchctl list com.example.other").out


class TestEnvironment:
    def test_setenv_over_ssh_stays_in_the_user_s_domain(self, run: Run, machine: Mac) -> None:
        plist(machine)
        assert run("launchctl setenv A 1; launchctl getenv A").out == "1\n"
        bootstrap(run)
        assert "A" not in environment_of(field(run, "pid"))
        plist(machine, "com.example.other", LimitLoadToSessionType="Background")
        bootstrap(run, "user", "com.example.other")
        other = field(run, "pid", "user/$(id -u)/com.example.other")
        assert environment_of(other)["A"] == "1"

    def test_setenv_inside_gui_reaches_the_next_start_and_is_shown_before(
        self, run: Run, machine: Mac
    ) -> None:
        plist(machine, KeepAlive=True)
        bootstrap(run)
        plist(machine, "com.example.env", "launchctl setenv A 1")
        bootstrap(run, label="com.example.env")
        target = f"launchctl print gui/$(id -u)/{JOB}"
        eventually(lambda: "inherited environment = {\n\t\tA => 1\n" in run(target).out)
        before = field(run, "pid")
        assert "A" not in environment_of(before), "print shows it before the process has it"
        os.kill(int(before), signal.SIGKILL)
        eventually(lambda: field(run, "pid") not in ("", before))
        assert environment_of(field(run, "pid"))["A"] == "1"

    def test_setenv_is_gone_after_a_reboot(self, machine: Mac) -> None:
        with connect(machine) as client:
            execute(client, "launchctl setenv A 1")
        machine.reboot()
        with connect(machine) as client:
            assert execute(client, "launchctl getenv A").out == ""

    def test_asuser_requires_root(self, run: Run) -> None:
        result = run("launchctl asuser $(id -u) true")
        assert (result.code, result.err) == (
            1,
            "You must be root to run a command as another user.\n",
        )


class TestLegacyVerbs:
    def test_load_never_fails_and_guesses_the_domain(self, run: Run, machine: Mac) -> None:
        plist(machine)
        result = run(f"launchctl load Library/LaunchAgents/{JOB}.plist")
        assert (result.code, result.err) == (0, "Load failed: 5: Input/output error\n")
        plist(machine, LimitLoadToSessionType="Background")
        run(f"launchctl load Library/LaunchAgents/{JOB}.plist")
        assert field(run, "state", f"user/$(id -u)/{JOB}") == "running"

    def test_print_disabled_lists_enabled_and_disabled_labels(self, run: Run) -> None:
        run("launchctl disable gui/$(id -u)/one; launchctl enable gui/$(id -u)/two")
        assert run("launchctl print-disabled user/$(id -u)").out.startswith(
            'disabled services = {\n\t"one" => disabled\n\t"two" => enabled\n}\n'
        )


def test_print_repeats_keys_in_nested_blocks(run: Run, machine: Mac) -> None:
    plist(machine)
    bootstrap(run)
    shown = run(f"launchctl print gui/$(id -u)/{JOB}").out
    assert shown.startswith(f"gui/{machine.uid}/{JOB} = {{\n\tactive count = 1\n\tpath = ")
    assert "\n\tstate = running\n" in shown
    assert "\n\t\tstate = active\n" in shown, "the state of a coalition"
    machine.vary(full_header=False)
    assert run(f"launchctl print gui/$(id -u)/{JOB}").out.startswith(f"{JOB} = {{\n")


@pytest.mark.parametrize(
    "keys",
    [
        {"KeepAlive": {"SuccessfulExit": False}},
        {"Sockets": {}},
        {"EnvironmentVariables": {"A": 1}},
        {"LimitLoadToSessionType": "Screen"},
    ],
)
def test_plist_keys_that_are_not_simulated_are_refused(
    run: Run, machine: Mac, keys: dict[str, Any]
) -> None:
    plist(machine, **keys)
    bootstrap(run)
    log = machine.folder / "refused.log"
    assert len(log.read_text().splitlines()) == 1
    log.write_text("")
