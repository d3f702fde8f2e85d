"""Parsing of unit and environment files by systemd's rules; compared with the host's systemd where
there is one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fleetsim.systemd.syntax import BadSyntax, parse_environment_file, split
from fleetsim.systemd.unit import SearchPath, Unit, load
from fleetsim.tools.calls import Call
from fleetsim.tools.systemd_analyze import SystemdAnalyze

BROKEN = r"""[Unit]
Description=x
Foo=bar
[Service]
ExecStart=/usr/bin/env true
Environment="A=1
Environment=B=\q C=2
Environment="D=%z" E=%%
Environment=9X=1 F=ok
EnvironmentFile=relative
TimeoutStopSec=soon
Restart=always
Restart=sometimes
nonsense
[Nope]
X=1
"""


def read(folder: Path, **files: str) -> Unit:
    """Load a unit from files: the keyword `unit`, and a keyword per drop-in."""
    (folder / "x.service.d").mkdir(exist_ok=True)
    for name, text in files.items():
        path = "x.service" if name == "unit" else f"x.service.d/{name}.conf"
        (folder / path).write_text(text)
    return load("x.service", search_path(folder))


def search_path(*folders: Path) -> SearchPath:
    def refuse(what: str) -> None:
        raise AssertionError(what)

    return SearchPath(folders, {"h": "/home/ada"}, refuse)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A=1 B=2", ["A=1", "B=2"]),
        ('"A=1 2" B=3', ["A=1 2", "B=3"]),
        ("'A=1 2'", ["A=1 2"]),
        ('A=a"b c"d', ["A=ab cd"]),
        (r'"A=q\"q"', ['A=q"q']),
        (r"'A=q\'q'", ["A=q'q"]),
        (r"A=a\x09b\101\s", ["A=a\tbA "]),
        (r"A=\u00e9", ["A=é"]),
        ('""', [""]),
        ("  ", []),
        ("A=$HOME", ["A=$HOME"]),
    ],
)
def test_words_of_a_setting(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize("text", ['"open', r"A=\q", "A=\\", r"A=\x0", r"A=\x00"])
def test_invalid_words_are_rejected(text: str) -> None:
    with pytest.raises(BadSyntax):
        split(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\nB=2\n", [("A", "1"), ("B", "2")]),
        ("# no\n; no\nA=1", [("A", "1")]),
        ("A = 1 2 \n", [("A", "1 2")]),
        ("A='1 ' \n", [("A", "1 ")]),
        ('A="1\\n2"\n', [("A", "1\\n2")]),
        ('A="\\"\\$\\\\"\n', [("A", '"$\\')]),
        ('A="two\nlines"\n', [("A", "two\nlines")]),
        ("A=1\\\n2\n", [("A", "12")]),
        ("A=a\\ b\\\\\n", [("A", "a b\\")]),
        ("A='1'2\n", [("A", "12")]),
        ("A=\nB=1", [("A", ""), ("B", "1")]),
        ("no assignment\nA=1\n", [("A", "1")]),
        ("A=it's\n", [("A", "it's")]),
        ("export A=1\n", [("export A", "1")]),
    ],
)
def test_environment_file(text: str, found: list[tuple[str, str]]) -> None:
    assert parse_environment_file(text) == found


def test_later_drop_in_overrides_the_unit(tmp_path: Path) -> None:
    unit = read(
        tmp_path,
        unit="[Service]\nExecStart=/bin/true\nEnvironment=A=unit B=unit\n",
        zz="[Service]\nEnvironment=A=zz\n",
        override="[Service]\nEnvironment=A=override\n",
    )
    assert unit.environment == {"A": "zz", "B": "unit"}
    assert [Path(path).name for path in unit.drop_ins] == ["override.conf", "zz.conf"]


def test_empty_assignment_clears_the_list(tmp_path: Path) -> None:
    unit = read(
        tmp_path,
        unit="[Service]\nExecStart=/bin/false\nEnvironment=A=1\n",
        reset="[Service]\nExecStart=\nExecStart=/bin/true x\nEnvironment=\nEnvironment=B=2\n",
    )
    assert unit.argv == ("/bin/true", "x")
    assert unit.environment == {"B": "2"}


def test_first_folder_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (second, first):
        (folder / "x.service.d").mkdir(parents=True)
        (folder / "x.service").write_text(f"[Service]\nExecStart=/bin/{folder.name}\n")
        (folder / "x.service.d/a.conf").write_text(f"[Service]\nEnvironment=FROM={folder.name}\n")
    unit = load("x.service", search_path(first, second))
    assert (unit.argv, unit.environment) == (("/bin/1",), {"FROM": "1"})


def test_specifiers_and_joined_lines(tmp_path: Path) -> None:
    text = "[Service]\nExecStart=%h/bin/x \\\n# between\n  --percent=%%\nEnvironment=A=%n\n"
    unit = read(tmp_path, unit=text)
    assert unit.argv == ("/home/ada/bin/x", "--percent=%")
    assert unit.environment == {"A": "x.service"}


def test_unit_without_a_command_is_invalid(tmp_path: Path) -> None:
    assert read(tmp_path, unit="[Service]\nRestart=always\n").load_state == "bad-setting"


def test_setting_that_is_not_simulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="DynamicUser"):
        read(tmp_path, unit="[Service]\nExecStart=/bin/true\nDynamicUser=yes\n")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("unit", "drop_in"),
    [
        pytest.param(BROKEN, "", id="every kind of mistake"),
        pytest.param("[Service]\nExecStart=/usr/bin/env\n", "", id="no mistake"),
        pytest.param("[Service]\nRestart=always\n", "", id="no command"),
        pytest.param("[Service]\nExecStart=/no/such\n", "", id="command missing"),
        pytest.param(
            "[Service]\nExecStart=/usr/bin/env\n", "Environment=A=1\n", id="no section header"
        ),
        pytest.param(
            "[Service]\nExecStart=/usr/bin/env\n", "[Service]\nBlah=1\n", id="bad drop-in"
        ),
    ],
)
def test_verify_prints_the_warnings_of_the_real_one(
    tmp_path: Path, unit: str, drop_in: str
) -> None:
    folder = tmp_path / ".config/systemd/user"
    (folder / "x.service.d").mkdir(parents=True)
    (folder / "x.service").write_text(unit)
    (folder / "x.service.d/a.conf").write_text(drop_in)
    real = subprocess.run(
        ["systemd-analyze", "--user", "verify", folder / "x.service"],
        env={**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    call = Call(tmp_path, ["--user", "verify", str(folder / "x.service")])
    simulated = SystemdAnalyze(search_path(folder))(call)
    assert simulated.err.splitlines() == real.stderr.splitlines()
    assert simulated.code == real.returncode
