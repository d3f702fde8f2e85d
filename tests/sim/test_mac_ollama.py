"""The ways to run Ollama on a simulated Mac: the app, Homebrew, an agent, by hand."""

import json
import os
import re
import signal
from collections.abc import Iterator

import pytest

from fleetsim.fleet import Fleet
from fleetsim.mac.mac import Mac
from tests.sim.mac_machine import LABEL, bootstrap, field, plist
from tests.sim.remote import Run, connect, eventually, execute, until_answering

QUIT = "pkill -TERM -x Ollama; while pgrep -x Ollama >/dev/null; do sleep 0.1; done"
REOPEN = "open -j -a Ollama --args hidden --fast-startup"


def configured(machine: Mac, log: str = ".ollama/logs/server.log") -> dict[str, str]:
    """The last `server config` line; empty until there is one."""
    file = machine.home / log
    lines = file.read_text().splitlines() if file.exists() else []
    found = [line for line in lines if 'msg="server config"' in line]
    return dict(re.findall(r"(OLLAMA_\w+):(\S*)", found[-1])) if found else {}


def starts(machine: Mac) -> int:
    file = machine.home / ".ollama/logs/server.log"
    return file.read_text().count('msg="server config"') if file.exists() else 0


@pytest.fixture
def machine(fleet: Fleet) -> Mac:
    return fleet.mac("mini", ollama="app")


@pytest.fixture
def brewed(fleet: Fleet) -> Iterator[tuple[Mac, Run]]:
    machine = fleet.mac("mini", ollama="brew")
    until_answering(machine)
    with connect(machine) as client:
        yield machine, lambda script: execute(client, script)


class TestApp:
    def test_login_starts_the_app_and_its_server(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        app, server = run("pgrep -x Ollama").out, run("pgrep -x ollama").out
        assert run(f"ps -p {server.strip()} -o ppid=").out.strip() == app.strip()
        command = run(f"ps -p {server.strip()} -o command=").out
        assert command.endswith("/Applications/Ollama.app/Contents/Resources/ollama serve\n")
        assert field(run, "state", "gui/$(id -u)/com.ollama.ollama") == "running"
        machine.reboot()
        assert machine.processes() == [], "it needs a login at the screen"

    def test_setenv_over_ssh_does_not_reach_the_app(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        run(f"launchctl setenv OLLAMA_KEEP_ALIVE 7m; {QUIT}")
        assert run(REOPEN).code == 0
        until_answering(machine)
        assert configured(machine)["OLLAMA_KEEP_ALIVE"] == "5m0s"
        assert run("launchctl getenv OLLAMA_KEEP_ALIVE").out == "7m\n", (
            "although getenv prints the value"
        )

    def test_setenv_in_a_gui_agent_reaches_the_app(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        plist(machine, "com.example.env", "launchctl setenv OLLAMA_KEEP_ALIVE 7m")
        assert bootstrap(run, label="com.example.env") == 0
        gui = "launchctl print gui/$(id -u)"
        eventually(lambda: "OLLAMA_KEEP_ALIVE => 7m" in run(gui).out)
        assert configured(machine)["OLLAMA_KEEP_ALIVE"] == "5m0s", "not before a restart"
        run(QUIT)
        run(REOPEN)
        eventually(lambda: configured(machine).get("OLLAMA_KEEP_ALIVE") == "7m0s")

    def test_killed_server_is_restarted_with_the_same_log(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        pid_file = machine.home / "Library/Application Support/Ollama/ollama.pid"
        os.kill(int(pid_file.read_text()), signal.SIGINT)
        eventually(lambda: starts(machine) == 2)
        app = run("pgrep -x Ollama").out
        run(QUIT)
        run(REOPEN)
        until_answering(machine)
        assert starts(machine) == 1, "the app's own start begins a new log"
        assert run("grep -c 'server config' .ollama/logs/server-1.log").out == "2\n"
        assert run("pgrep -x Ollama").out != app

    def test_quitting_can_be_slow(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        machine.behave(app_quit_seconds=0.6)
        run("pkill -TERM -x Ollama")
        assert run("sleep 0.2; pgrep -x Ollama").code == 0
        eventually(lambda: run("pgrep -x Ollama || pgrep -x ollama").code == 1)

    def test_app_settings_override_the_environment(self, fleet: Fleet) -> None:
        settings = {"expose": 1, "browser": 1, "context_length": 8192, "models": "/nowhere"}
        machine = fleet.mac("mini", ollama="app", app_settings=settings)
        until_answering(machine)
        seen = configured(machine)
        assert seen["OLLAMA_HOST"] == "http://0.0.0.0:11434"
        assert seen["OLLAMA_ORIGINS"].startswith("[*")
        assert seen["OLLAMA_CONTEXT_LENGTH"] == "8192"
        assert seen["OLLAMA_MODELS"] == f"{machine.home}/.ollama/models", (
            "a missing folder is ignored"
        )
        with connect(machine) as client:
            database = '"$HOME/Library/Application Support/Ollama/db.sqlite"'
            query = "select expose,browser,models,context_length from settings"
            asked = execute(client, f"sqlite3 -readonly {database} '{query}'")
            assert asked.out == "1|1|/nowhere|8192\n"
            shown = execute(client, "lsof -nP -iTCP:11434 -sTCP:LISTEN -Fn").out
            assert "n*:11434\n" in shown

    def test_start_in_the_background_installs_a_staged_update(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        staged = "Library/Caches/ollama/updates"
        run(f"mkdir -p {staged}; echo 0.25.0 >{staged}/version")
        for arguments, version in (("hidden --fast-startup", "0.24.0"), ("hidden", "0.25.0")):
            run(QUIT)
            run(f"open -j -a Ollama --args {arguments}")
            until_answering(machine)
            assert machine.behaviour.version == version

    def test_open_passes_env_options_but_not_its_own_environment(
        self, run: Run, machine: Mac
    ) -> None:
        until_answering(machine)
        run(QUIT)
        variables = "export OLLAMA_NUM_PARALLEL=3; open -j -a Ollama --env OLLAMA_KEEP_ALIVE=9m"
        assert run(f"{variables} --args hidden --fast-startup").code == 0
        eventually(lambda: configured(machine).get("OLLAMA_KEEP_ALIVE") == "9m0s")
        assert configured(machine)["OLLAMA_NUM_PARALLEL"] == "1"
        before = run("pgrep -x Ollama").out
        run(REOPEN)
        assert run("pgrep -x Ollama").out == before, "a running app is only brought to the front"

    def test_app_ends_a_server_that_holds_its_port(self, run: Run, machine: Mac) -> None:
        until_answering(machine)
        run(QUIT)
        run(REOPEN)
        until_answering(machine)
        run("kill -9 $(pgrep -x Ollama)")
        assert run("pgrep -x ollama").code == 0, "a killed app leaves its server behind"
        orphan = run("pgrep -x ollama").out
        run(REOPEN)
        eventually(lambda: run("pgrep -x ollama").out not in ("", orphan))
        until_answering(machine)

    def test_app_needs_a_login_at_the_screen(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", ollama="app", logged_in=False)
        with connect(machine) as client:
            result = execute(client, REOPEN)
            assert result.code == 1
            assert 'RBSRequestErrorDomain Code=5 "Launch failed."' in result.err
            assert execute(client, "pgrep -f Resources/ollama").code == 1

    def test_command_line_starts_the_app_except_for_the_version(
        self, run: Run, machine: Mac
    ) -> None:
        until_answering(machine)
        run(QUIT)
        run(".local/bin/ollama -v")
        assert run("pgrep -x Ollama").code == 1
        run(".local/bin/ollama list")
        until_answering(machine)
        (machine.folder / "refused.log").write_text("")  # `list` itself is not simulated


class TestBrew:
    def test_service_runs_with_the_formula_s_variables(self, brewed: tuple[Mac, Run]) -> None:
        machine, run = brewed
        seen = configured(machine, "homebrew/var/log/ollama.log")
        assert seen["OLLAMA_KV_CACHE_TYPE"] == "q8_0"
        (info,) = json.loads(run("brew services info ollama --json").out)
        assert (info["status"], info["service_name"]) == ("started", "homebrew.mxcl.ollama")
        assert str(info["pid"]) == run("pgrep -x ollama").out.strip()
        assert json.loads(run("brew services list --json").out)[0]["status"] == "started"

    def test_env_file_takes_effect_at_the_next_restart(self, brewed: tuple[Mac, Run]) -> None:
        machine, run = brewed
        run("mkdir -p .homebrew/services; echo OLLAMA_KEEP_ALIVE=7m >.homebrew/services/ollama.env")
        log = "homebrew/var/log/ollama.log"
        for mode, seen in (("664", "5m0s"), ("644", "7m0s")):
            run(f"chmod {mode} .homebrew/services/ollama.env; brew services restart ollama")
            until_answering(machine)
            assert configured(machine, log)["OLLAMA_KEEP_ALIVE"] == seen

    def test_old_brew_ignores_the_env_file(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", ollama="brew", brew="6.0.14")
        with connect(machine) as client:
            execute(
                client,
                "mkdir -p .homebrew/services; umask 022; "
                "echo OLLAMA_KEEP_ALIVE=7m >.homebrew/services/ollama.env; "
                "brew services restart ollama",
            )
            shown = execute(client, "plutil -convert json -o - Library/LaunchAgents/*.plist").out
        assert "OLLAMA_KEEP_ALIVE" not in shown

    def test_stop_deletes_the_plist(self, brewed: tuple[Mac, Run]) -> None:
        machine, run = brewed
        assert run("brew services stop ollama").code == 0
        assert list((machine.home / "Library/LaunchAgents").iterdir()) == []
        assert run("pgrep -x ollama").code == 1
        again = run("brew services stop ollama")
        assert (again.code, again.err) == (0, "Warning: Service `ollama` is not started.\n")

    def test_new_brew_has_another_label_from_its_next_restart(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", ollama="brew", brew="6.1.0")
        with connect(machine) as client:
            target = "launchctl print gui/$(id -u)/sh.brew.ollama"
            assert execute(client, target).code == 0
            old = "launchctl print gui/$(id -u)/homebrew.mxcl.ollama"
            assert execute(client, old).code == 113

    def test_without_a_terminal_brew_assumes_a_login_at_the_screen(self, fleet: Fleet) -> None:
        machine = fleet.mac("mini", ollama="brew", logged_in=False)
        with connect(machine) as client:
            execute(client, "brew services stop ollama")
            result = execute(client, "brew services start ollama")
            assert (result.code, "exited with 125" in result.err) == (1, True)
            with_terminal = "SSH_TTY=/dev/ttys000 brew services start ollama"
            assert execute(client, with_terminal).code == 0
            target = "launchctl print user/$(id -u)/homebrew.mxcl.ollama"
            assert execute(client, target).code == 0


def test_agent_and_manual_server_listen(fleet: Fleet) -> None:
    for name, mode in (("one", "agent"), ("two", "manual")):
        machine = fleet.mac(name, ollama=mode, environment={"OLLAMA_HOST": "0.0.0.0"})  # type: ignore[arg-type]
        until_answering(machine)
        with connect(machine) as client:
            shown = execute(client, "lsof -nP -iTCP:11434 -sTCP:LISTEN -Fpn").out
            assert shown.splitlines()[-1] == "n*:11434"
            loaded = execute(client, f"launchctl print gui/$(id -u)/{LABEL}").code
            assert loaded == (0 if mode == "agent" else 113)


def test_server_of_a_mac_uses_metal(fleet: Fleet) -> None:
    machine = fleet.mac("mini")
    log = machine.home / ".ollama/logs/fleetctl-server.log"
    until_answering(machine)
    assert "library=Metal" in log.read_text()


def test_installed_program_does_not_run(fleet: Fleet) -> None:
    machine = fleet.mac("mini", ollama="installed")
    with connect(machine) as client:
        assert "client version is 0.24.0" in execute(client, ".local/bin/ollama -v").out
    assert machine.processes() == []
