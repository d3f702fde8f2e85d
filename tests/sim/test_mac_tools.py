"""The tools of a simulated Mac: their output, and that GNU options are refused."""

import pytest

from fleetsim.fleet import Fleet
from fleetsim.mac.mac import Mac
from tests.sim.mac_machine import plist
from tests.sim.remote import Run


@pytest.fixture
def machine(fleet: Fleet) -> Mac:
    return fleet.mac("mini", ollama="absent")


def test_facts_are_those_of_a_mac(run: Run) -> None:
    assert run("uname -sm").out == "Darwin arm64\n"
    assert run("cat /etc/os-release").code == 1
    assert run("sw_vers -productVersion; sw_vers --productVersion").out == "15.7.1\n15.7.1\n"
    assert run("sysctl -n hw.memsize iogpu.wired_limit_mb").out == f"{16 * 2**30}\n0\n"
    assert run("scutil --get LocalHostName").out == "mini\n"
    assert run("scutil --get HostName").code == 1
    assert "\tinet 192.168.77.10 netmask" in run("ifconfig -a").out
    assert run("fdesetup isactive").code == 1
    assert run("dscl . -read /Users/ada UserShell").out == "UserShell: /bin/sh\n"
    assert run("dscl . -read /Users/nobody UserShell").code == 56


def test_boot_session_uuid_is_stable_within_a_boot(run: Run, machine: Mac) -> None:
    before = run("sysctl -n kern.bootsessionuuid").out
    assert len(before) == 37
    assert run("sysctl -n kern.bootsessionuuid").out == before


def test_commands_that_a_mac_lacks_are_not_found(run: Run) -> None:
    absent = (
        "timeout flock setsid tac nproc free ss ip getent systemctl journalctl loginctl python3 "
        "zstd realpath sudo"
    )
    script = (
        f"PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin; for tool in {absent}; do $tool; echo $?; done"
    )
    assert set(run(script).out.split()) == {"127"}
    assert run("command -v sudo timeout systemctl").out == ""


def test_stat_formats(run: Run, machine: Mac) -> None:
    run("umask 022; printf 123 >file; chmod 640 file; ln -s file link")
    assert run("stat -f '%Su %u %Lp %z %N' file").out == f"ada {machine.uid} 640 3 file\n"
    assert run("stat -f %HT link; stat -L -f %HT link").out == "Symbolic Link\nRegular File\n"
    assert run("stat -f %Su /dev/console").out == "ada\n"
    assert run("stat -f %u missing").code == 1


def test_plutil_lints_and_extracts(run: Run, machine: Mac) -> None:
    file = plist(machine, EnvironmentVariables={"A": "a b"})
    assert run(f"plutil -lint {file}").out == f"{file}: OK\n"
    extract = "plutil -extract {} raw -o - " + str(file)
    assert run(extract.format("EnvironmentVariables.A")).out == "a b\n"
    assert run(extract.format("RunAtLoad")).out == "true\n"
    assert run(extract.format("ProgramArguments")).out == "3\n"
    assert run(extract.format("Nothing")).code == 1
    file.write_text("<plist>")
    broken = run(f"plutil -lint {file}")
    assert (broken.code, broken.out.startswith(f"{file}: ")) == (1, True)


def test_ps_and_pgrep(run: Run, machine: Mac) -> None:
    line = run("ps -p $$ -o pid=,ppid=,uid=,lstart=,command=").out.split()
    assert line[2] == str(machine.uid)
    assert line[-2:] == ["/bin/sh", "-s"]
    assert run("pgrep -f 'sh -s'").code == 1, "the caller and its ancestors are excluded"
    assert run("pgrep -af 'sh -s'").code == 0, (
        "-a includes ancestors; unlike on Linux it prints no command lines"
    )
    assert run("sleep 60 & pgrep -lx sleep; pkill -x sleep").out.endswith(" sleep\n")
    assert "A=1" in run("A=1 sleep 60 & ps -E -p $! -o command=; kill $!").out


def test_power_settings_are_changed_by_root_only(run: Run) -> None:
    assert "\n sleep                1\n" in run("pmset -g").out
    refused = run("pmset -a sleep 0")
    assert (refused.code, refused.err) == (77, "Must be run as root to modify settings\n")


def test_mktemp_ignores_tmpdir(run: Run, machine: Mac) -> None:
    assert run("TMPDIR=/nowhere mktemp").out.startswith(f"{machine.folder}/run/T/tmp.")
    assert run('mktemp -d "$HOME/x.XXXXXX"').out.startswith(f"{machine.home}/x.")


def test_base64_is_not_wrapped(run: Run) -> None:
    assert run("printf %0100d 0 | base64").out.count("\n") == 1
    assert run("echo YQ== | base64 -D").out == "a"
    assert run("base64 /dev/null").code == 64


def test_posix_tools_work(run: Run) -> None:
    script = """
        mkdir -p a/b; printf 'x\\ny\\n' >a/f; cp -p a/f a/g; ln -s f a/l; mv -f a/g a/h
        ls -ldn a/f | cut -c 1; tail -n 1 a/h; head -c 1 a/f; echo; grep -v x a/f | tr y z
        sort -r a/f | sed 1q; readlink a/l; cksum <a/f | wc -l | tr -d ' '; df -Pk . | wc -l
        date -u +%Y | wc -c; date -r 0 -u +%s; find a -name 'f*' -print; awk 'END {print NR}' a/f
        sleep 0.01; echo 'a|b' | grep -qF 'a|b' && echo 'a?' | grep -vE 'b\\?'
        sync a; touch -r a/f a/h; env A=1 sh -c 'echo $A'; rm -rf a
    """
    found = run(script)
    assert (found.code, found.err) == (0, "")
    assert found.out.split() == "- y x z y f 1 2 5 0 a/f 2 a? 1".split()  # noqa: SIM905


REFUSED = [
    "stat -c %U .",
    "stat .",
    "stat -f %Y .",
    "readlink -f .",
    "date -d yesterday",
    "date +%s%N",
    "sed -i s/a/b/ file",
    "sed -r s/a/b/ file",
    r"echo a | sed 's/a\+/b/'",
    "mv -T a b",
    "ls --color",
    "grep -P a file",
    r"echo a | grep 'a\|b'",
    "find . -printf %p",
    "head -n -1 /dev/null",
    "sort --version-sort /dev/null",
    "mktemp --tmpdir",
    "base64 -w0",
    "cp --reflink a b",
    "dd if=/dev/null status=none",
    "ps -o cmd= -p 1",
    "ps aux --sort pid",
    "pgrep -c sleep",
    "netstat -lnt",
    "lsof -i :11434",
    "sysctl hw.memsize",
    "sysctl -n vm.swappiness",
    "uname -o",
    "hostname -I",
    "launchctl reboot",
    "launchctl bootout gui/$(id -u)",
    "launchctl print pid/1",
    "plutil -p file",
    "plutil -extract Label raw file",
    "defaults read x",
    "curl http://localhost",
    "tar -xf x",
    "pmset -b sleep 0",
    "sqlite3 x 'select 1'",
    "open http://localhost",
    "dscl . -list /Users",
    "log show",
    "ifconfig en0",
]


def test_unsupported_commands_and_options_are_refused(run: Run, machine: Mac) -> None:
    log = machine.folder / "refused.log"
    for command in REFUSED:
        result = run(command)
        assert (result.code, "not simulated" in result.err) == (125, True), command
        assert len(log.read_text().splitlines()) == 1, command
        log.write_text("")


def test_option_after_a_word_is_an_operand(run: Run) -> None:
    assert run("ls . --all").err.endswith("'--all': No such file or directory\n")
