"""systemctl, journalctl and loginctl of a simulated machine, called from scripts on it."""

import os
import signal
import time

import httpx
import pytest

from fleetsim.fleet import Fleet
from fleetsim.machine import Machine
from tests.sim.remote import (
    Run,
    alive,
    answering,
    connect,
    drop_in,
    environment_of,
    eventually,
    execute,
    show,
    until_answering,
    write,
)


def running_environment(run: Run) -> dict[str, str]:
    return environment_of(show(run, "MainPID"))


class TestShow:
    def test_properties_of_a_running_unit(self, run: Run, machine: Machine) -> None:
        names = "LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,NeedDaemonReload"
        assert run(f"systemctl --user show -p {names} ollama").out.splitlines() == [
            "Result=success",
            "NRestarts=0",
            "LoadState=loaded",
            "ActiveState=active",
            "SubState=running",
            "UnitFileState=enabled",
            "NeedDaemonReload=no",
        ], "in systemd's order, not in the order of the request"
        assert alive(int(show(run, "MainPID")))
        fragment = f"{machine.home}/.config/systemd/user/ollama.service"
        assert show(run, "FragmentPath") == fragment
        assert len(show(run, "InvocationID")) == 32
        assert int(show(run, "ExecMainStartTimestampMonotonic")) > 0

    def test_show_of_a_missing_unit_succeeds(self, run: Run) -> None:
        result = run("systemctl --user show -p LoadState,ActiveState,MainPID,UnitFileState nothing")
        assert result.out.splitlines() == [
            "MainPID=0",
            "LoadState=not-found",
            "ActiveState=inactive",
            "UnitFileState=",
        ]
        assert result.code == 0

    def test_system_scope_has_no_ollama(self, run: Run) -> None:
        assert run("systemctl show -p LoadState --value ollama").out == "not-found\n"
        restart = run("systemctl restart ollama")
        assert (restart.code, restart.err) == (
            1,
            "Failed to restart ollama.service: Interactive authentication required.\n",
        )

    def test_environment_is_quoted_where_a_shell_needs_it(self, run: Run, machine: Machine) -> None:
        values = r""""A=$x" "B=a\"b" "C=a'b" D=a*b E= F=a\\b "G=a\tb" H=é K=a=b "L=a\nb" M=~ O=!x"""
        drop_in(machine, "a", f"Environment={values}", "EnvironmentFile=-/x/%n")
        run("systemctl --user daemon-reload")
        assert show(run, "Environment") == (
            r""""A=\$x" "B=a\"b" "C=a'b" "D=a*b" E= "F=a\\b" "G=a\tb" H=é K=a=b "L=a\nb" M=~ """
            '"O=!x"'
        )
        assert show(run, "EnvironmentFiles") == "/x/ollama.service (ignore_errors=yes)"
        assert show(run, "DropInPaths").endswith("ollama.service.d/a.conf")

    def test_states_have_their_exit_codes(self, run: Run) -> None:
        assert run("systemctl --user is-active ollama").code == 0
        assert run("systemctl --user is-enabled ollama").out == "enabled\n"
        assert run("systemctl --user is-system-running").out == "running\n"
        absent = run("systemctl --user is-active nothing")
        assert (absent.out, absent.code) == ("inactive\n", 3)
        assert run("systemctl --user is-enabled nothing").code == 1

    def test_cat_shows_every_file(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "a", "Environment=A=1")
        run("systemctl --user daemon-reload")
        out = run("systemctl --user cat ollama").out
        assert out.startswith(f"# {machine.home}/.config/systemd/user/ollama.service\n[Unit]\n")
        assert "ollama.service.d/a.conf\n[Service]\nEnvironment=A=1\n" in out

    def test_user_manager_needs_the_runtime_folder(self, run: Run) -> None:
        result = run("unset XDG_RUNTIME_DIR; systemctl --user is-active ollama")
        assert (result.code, result.err) == (1, "Failed to connect to bus: No medium found\n")


class TestChange:
    def test_restart_makes_a_new_process_with_the_new_environment(
        self, run: Run, machine: Machine
    ) -> None:
        before = int(show(run, "MainPID"))
        drop_in(machine, "zz", 'Environment="OLLAMA_KEEP_ALIVE=24h"')
        run("systemctl --user daemon-reload && systemctl --user restart ollama")
        assert not alive(before)
        assert running_environment(run)["OLLAMA_KEEP_ALIVE"] == "24h"
        until_answering(machine)

    def test_changed_file_needs_a_reload(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "zz", "Environment=A=1")
        assert show(run, "NeedDaemonReload") == "yes"
        assert show(run, "DropInPaths") == ""
        restart = run("systemctl --user restart ollama")
        assert "changed on disk" in restart.err
        assert "A" not in running_environment(run)
        run("systemctl --user daemon-reload")
        assert show(run, "NeedDaemonReload") == "no"
        assert "A" not in running_environment(run), "a reload restarts nothing"

    def test_environment_file_wins_and_needs_no_reload(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "aa", "EnvironmentFile=-%h/ollama.env")
        drop_in(machine, "zz", "Environment=A=drop-in B=drop-in")
        run("systemctl --user daemon-reload")
        write(machine, "ollama.env", "A='from file'\n")
        assert show(run, "NeedDaemonReload") == "no"
        run("systemctl --user restart ollama")
        environment = running_environment(run)
        assert (environment["A"], environment["B"]) == ("from file", "drop-in")

    def test_missing_environment_file_fails_the_start_unless_marked(
        self, run: Run, machine: Machine
    ) -> None:
        drop_in(machine, "aa", "EnvironmentFile=%h/missing.env")
        result = run("systemctl --user daemon-reload; systemctl --user restart ollama")
        assert result.code == 1
        assert "failed because of unavailable resources" in result.err
        assert (show(run, "SubState"), show(run, "Result")) == ("auto-restart", "resources")

    def test_enabled_unit_stays_loaded_while_it_is_stopped(
        self, run: Run, machine: Machine
    ) -> None:
        run("systemctl --user stop ollama")
        drop_in(machine, "zz", "Environment=A=1")
        assert show(run, "NeedDaemonReload") == "yes"
        run("systemctl --user start ollama")
        assert "A" not in running_environment(run)

    def test_disabled_unit_is_read_again_after_a_stop(self, run: Run, machine: Machine) -> None:
        run("systemctl --user disable --now ollama")
        drop_in(machine, "zz", "Environment=A=1")
        assert show(run, "NeedDaemonReload") == "no"
        run("systemctl --user start ollama")
        assert running_environment(run)["A"] == "1"

    def test_unit_whose_file_was_removed_keeps_running_and_cannot_restart(
        self, run: Run, machine: Machine
    ) -> None:
        (machine.home / ".config/systemd/user/ollama.service").unlink()
        assert show(run, "UnitFileState") == "bad"
        run("systemctl --user daemon-reload")
        assert (show(run, "LoadState"), show(run, "ActiveState")) == ("not-found", "active")
        assert run("systemctl --user restart ollama").code == 5
        assert run("systemctl --user stop ollama").code == 0

    def test_stop_and_start(self, run: Run, machine: Machine) -> None:
        pid = int(show(run, "MainPID"))
        run("systemctl --user stop ollama")
        assert not alive(pid)
        assert (show(run, "ActiveState"), show(run, "MainPID")) == ("inactive", "0")
        assert run("systemctl --user start ollama").code == 0
        assert show(run, "ActiveState") == "active"

    def test_enable_disable_and_mask_change_files(self, run: Run, machine: Machine) -> None:
        link = machine.home / ".config/systemd/user/default.target.wants/ollama.service"
        assert "Removed" in run("systemctl --user disable ollama").err
        assert not link.is_symlink()
        assert run("systemctl --user is-enabled ollama").out == "disabled\n"
        assert "Created symlink" in run("systemctl --user enable --now ollama").err
        assert link.is_symlink()
        assert run("systemctl --user mask ollama").code == 1, "the file is in the way"
        run("systemctl --user mask --runtime --now ollama")
        assert run("systemctl --user is-enabled ollama").out == "enabled\n", "the own file wins"

    def test_masked_unit_does_not_start(self, run: Run) -> None:
        run("rm .config/systemd/user/ollama.service; systemctl --user stop ollama")
        run("systemctl --user mask ollama")
        result = run("systemctl --user start ollama")
        assert result.code == 1
        assert result.err.endswith("Unit ollama.service is masked.\n")
        assert show(run, "LoadState") == "masked"

    def test_job_gets_a_clean_environment(self, run: Run, machine: Machine) -> None:
        environment = running_environment(run)
        assert environment["HOME"] == str(machine.home)
        assert environment["INVOCATION_ID"] == show(run, "InvocationID")
        assert "SSH_CONNECTION" not in environment


class TestSupervision:
    def test_killed_job_is_restarted_after_its_delay(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "fast", "RestartSec=200ms")
        run("systemctl --user daemon-reload")
        pid, invocation = int(show(run, "MainPID")), show(run, "InvocationID")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: show(run, "SubState") == "auto-restart", 2)
        eventually(lambda: show(run, "SubState") == "running", 3)
        assert show(run, "NRestarts") == "1"
        assert show(run, "InvocationID") != invocation

    def test_stop_during_the_restart_delay_is_final(self, run: Run) -> None:
        os.kill(int(show(run, "MainPID")), signal.SIGKILL)
        eventually(lambda: show(run, "SubState") == "auto-restart", 2)
        run("systemctl --user stop ollama")
        assert show(run, "ActiveState") == "inactive"

    def test_crash_loop_hits_the_start_limit(self, run: Run, machine: Machine) -> None:
        machine.behave(crash_on_start=True)
        drop_in(machine, "fast", "RestartSec=10ms")
        run("systemctl --user daemon-reload; systemctl --user restart ollama")
        eventually(lambda: show(run, "ActiveState") == "failed")
        assert show(run, "Result") == "exit-code"
        assert show(run, "NRestarts") == "4", "five starts in ten seconds, and the boot was one"
        assert run("systemctl --user is-system-running").out == "degraded\n"
        failed = run("systemctl --user start ollama")
        assert failed.code == 1
        assert "control process exited with error code" in failed.err
        machine.behave(crash_on_start=False)
        run("systemctl --user reset-failed ollama; systemctl --user start ollama")
        assert show(run, "ActiveState") == "active"

    def test_job_that_ignores_term_is_killed_after_the_timeout(
        self, run: Run, machine: Machine
    ) -> None:
        machine.behave(ignore_term=True)
        drop_in(machine, "fast", "TimeoutStopSec=300ms")
        run("systemctl --user daemon-reload; systemctl --user restart ollama")
        until_answering(machine)
        pid = int(show(run, "MainPID"))
        started = time.monotonic()
        run("systemctl --user stop ollama")
        assert time.monotonic() - started >= 0.3
        assert not alive(pid)
        assert (show(run, "ActiveState"), show(run, "Result")) == ("failed", "timeout")

    def test_command_that_cannot_be_run_fails_with_203(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "bad", "ExecStart=", "ExecStart=/no/such/program", "Restart=no")
        restart = run("systemctl --user daemon-reload; systemctl --user restart ollama")
        assert restart.code == 0, "a simple service counts as started once it is forked"
        assert (show(run, "ActiveState"), show(run, "ExecMainStatus")) == ("failed", "203")


class TestJournal:
    def test_config_line_of_this_run_is_found_by_invocation(self, run: Run) -> None:
        match = "_SYSTEMD_INVOCATION_ID=$(systemctl --user show -p InvocationID --value ollama)"
        script = f'journalctl --user -o cat --no-pager {match} | grep -c "server config"'
        eventually(lambda: run(script).out == "1\n")
        run("systemctl --user restart ollama")
        eventually(lambda: run(script).out == "1\n")
        both = 'journalctl --user -u ollama -o cat --no-pager | grep -c "server config"'
        assert run(both).out == "2\n"

    def test_last_lines_only(self, run: Run, machine: Machine) -> None:
        until_answering(machine)
        result = run("journalctl --user -u ollama -o cat --no-pager -n 2")
        assert len(result.out.splitlines()) == 2

    def test_messages_of_the_manager_are_not_the_job_s(self, run: Run) -> None:
        assert "Started ollama.service" in run("journalctl --user -u ollama -o cat").out
        invocation = show(run, "InvocationID")
        own = run(f"journalctl --user -o cat _SYSTEMD_INVOCATION_ID={invocation}").out
        assert "Started" not in own

    def test_other_output_formats_have_time_host_and_pid(self, run: Run) -> None:
        line = run("journalctl --user -u ollama -o short-iso -n 1").out
        assert line[:4].isdigit()
        assert " workstation " in line

    def test_an_empty_result_is_reported(self, run: Run) -> None:
        assert run("journalctl --user -u nothing").out == "-- No entries --\n"
        assert run("journalctl --user -u nothing -o cat").out == ""


class TestLingerAndReboot:
    def test_without_linger_the_job_ends_with_the_last_session(self, fleet: Fleet) -> None:
        machine = fleet.linux("laptop", linger=False)
        assert machine.processes() == []
        with connect(machine) as client:
            until_answering(machine)
            shown = execute(client, "loginctl show-user ada -p Linger --value")
            assert shown.out == "no\n"
        eventually(lambda: not machine.processes())

    def test_without_linger_a_running_script_keeps_the_manager(self, fleet: Fleet) -> None:
        machine = fleet.linux("laptop", linger=False)
        with connect(machine) as client:
            stdin, stdout, _ = client.exec_command("/bin/sh -s")
            script = "cat >/dev/null; sleep 1; systemctl --user is-active ollama >$HOME/found"
            stdin.write("trap '' PIPE HUP; echo ready; " + script + "\n")
            assert stdout.readline() == "ready\n"
        eventually(lambda: not machine.processes())
        assert (machine.home / "found").read_text() == "active\n"

    def test_with_linger_the_job_stays(self, fleet: Fleet) -> None:
        machine = fleet.linux("laptop", linger=False)
        with connect(machine) as client:
            assert execute(client, "loginctl enable-linger").code == 0
            until_answering(machine)
        time.sleep(0.6)
        assert answering(machine)

    def test_reboot_starts_enabled_units(self, run: Run, machine: Machine) -> None:
        before = show(run, "MainPID")
        machine.reboot()
        until_answering(machine)
        with connect(machine) as client:
            after = execute(client, "systemctl --user show -p MainPID --value ollama").out.strip()
        assert after not in ("0", before)

    def test_reboot_does_not_start_disabled_units(self, run: Run, machine: Machine) -> None:
        run("systemctl --user disable ollama")
        machine.reboot()
        assert machine.processes() == []

    def test_files_survive_a_reboot(self, run: Run, machine: Machine) -> None:
        drop_in(machine, "zz", "Environment=OLLAMA_KEEP_ALIVE=7h")
        machine.reboot()
        with connect(machine) as client:
            environment = running_environment(lambda script: execute(client, script))
        assert environment["OLLAMA_KEEP_ALIVE"] == "7h", "a boot reads all files again"


class TestStrictness:
    @pytest.mark.parametrize(
        "command",
        [
            "systemctl --user edit ollama",
            "systemctl --user --frobnicate show ollama",
            "systemctl --user show -p Frobnicate ollama",
            "systemctl --user start default.target",
            "journalctl --user -u ollama --follow",
            "journalctl --user FROB=1",
            "loginctl list-sessions",
            "loginctl show-user ada -p Name,Linger",
            "systemd-analyze --user blame",
            "uname --kernel-name",
            "id nobody",
            "ollama list",
        ],
    )
    def test_commands_that_are_not_simulated_are_refused(
        self, run: Run, machine: Machine, command: str
    ) -> None:
        result = run(command)
        assert result.code != 0
        assert "not simulated" in result.err
        log = machine.folder / "refused.log"
        assert len(log.read_text().splitlines()) == 1
        log.write_text("")

    def test_routes_that_are_not_simulated_are_refused(self, machine: Machine) -> None:
        until_answering(machine)
        answer = httpx.post(f"{machine.endpoint}/v1/chat/completions", json={}, trust_env=False)
        assert answer.status_code == 501
        log = machine.folder / "refused.log"
        assert log.read_text() == "ollama: POST /v1/chat/completions is not simulated\n"
        log.write_text("")
