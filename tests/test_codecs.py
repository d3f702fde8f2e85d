"""Every codec returns a value unaltered or refuses it, also when the programs that use the files
read them: 10,000 values each."""

import io
import os
import plistlib
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import dotenv
import pytest
import yaml
from hypothesis import given
from lxml import etree
from ruamel.yaml import YAML

from fleetctl.codecs import (
    Unrepresentable,
    front_matter,
    homebrew_env,
    plist,
    sh,
    systemd_env_file,
    systemd_unit,
    yaml_flow,
)
from fleetctl.codecs import dotenv as dotenv_codec
from tests import values
from tests.conftest import needs_shell

COUNT = 10_000
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash"],
    "bash --posix": ["bash", "--posix"],
    "busybox sh": ["busybox", "sh"],
    "zsh": ["zsh", "-f"],
    "zsh as sh": ["zsh", "--emulate", "sh", "-f"],
    "mksh": ["mksh"],
    "fish": ["fish", "--no-config"],
}


def accepted(encode: Callable[[str], str]) -> list[tuple[str, str]]:
    """(value, encoded) of the first 10,000 values that the codec takes."""
    pairs: list[tuple[str, str]] = []
    refused = 0
    for value in values.supply():
        try:
            pairs.append((value, encode(value)))
        except Unrepresentable:
            refused += 1
        if len(pairs) == COUNT:
            break
    assert refused < COUNT
    return pairs


def names(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    return {f"V{at}": pair for at, pair in enumerate(pairs)}


ASSIGNMENTS = [
    (systemd_env_file, "{name}={value}\n"),
    (systemd_unit, 'Environment="{name}={value}"\n'),
    (sh, "export {name}={value}\n"),
    (dotenv_codec, "{name}={value}\n"),
]


@pytest.mark.parametrize(("codec", "line"), ASSIGNMENTS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_was_written_is_read_back(codec: ModuleType, line: str) -> None:
    written = names(accepted(codec.encode))
    text = "# a comment\n" + "".join(
        line.format(name=name, value=encoded) for name, (_, encoded) in written.items()
    )
    assert codec.decode(text) == {name: value for name, (value, _) in written.items()}


@given(values.texts)
def test_every_codec_reads_back_any_text(value: str) -> None:
    for codec, line in ASSIGNMENTS:
        try:
            text = line.format(name="A", value=codec.encode(value))
        except Unrepresentable:
            continue
        assert codec.decode(text) == {"A": value}


@given(values.texts)
def test_a_unit_reads_back_any_word_of_a_command_but_those_with_a_dollar(value: str) -> None:
    """systemd expands `$` in commands, so such a word is not reported."""
    try:
        text = f'ExecStart=-/bin/echo "{systemd_unit.encode(value)}" end\n'
    except Unrepresentable:
        return
    words = ["/bin/echo", value, "end"] if "$" not in value else ["/bin/echo", "end"]
    assert systemd_unit.decode(text) == {"ExecStart": words}


@given(values.texts)
def test_a_unit_reads_back_any_path_that_needs_no_escape_but_percent(value: str) -> None:
    """systemd does not unquote these settings, so any other escape would alter the value."""
    path = f"/{value}"
    try:
        text = f"[Service]\nEnvironmentFile=-{systemd_unit.encode(path)}\nUser=ada\n"
    except Unrepresentable:
        return
    found = systemd_unit.decode(text)["EnvironmentFile"]
    altered = bool(re.search(r'[\\"\x01-\x1f\x7f]', path)) or path != path.strip(" ")
    assert (found != [path]) == altered


def test_a_unit_is_read_as_systemd_reads_it() -> None:
    text = """\
# EnvironmentFile=/comment
; User=comment
[Service]
Environment="A=1 2" B=3 'C=4%%'
Environment="D=wrongly "quoted"
EnvironmentFile=-%h/a.env
EnvironmentFile = /etc/b.env
ExecStartPre=-/bin/sh -c 'exit "$1"' \\
    '50%%'
ExecStart=
"""
    assert systemd_unit.decode(text) == {
        "A": "1 2",
        "B": "3",
        "C": "4%",
        "EnvironmentFile": ["%h/a.env", "/etc/b.env"],
        "ExecStartPre": ["/bin/sh", "-c", "50%"],
        "ExecStart": [],
    }


@pytest.mark.parametrize(
    "encode", [c.encode for c, _ in ASSIGNMENTS] + [plist.encode, yaml_flow.encode]
)
@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_no_format_takes_nul_or_half_a_surrogate_pair(
    encode: Callable[[str], str], value: str
) -> None:
    with pytest.raises(Unrepresentable, match="cannot be written"):
        encode(value)


def sourced_by(shell: list[str], file: Path) -> dict[bytes, bytes]:
    """The environment after a shell has sourced the file."""
    done = subprocess.run(
        [*shell, "-c", f". {file}; exec env -0"],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(file.parent)},
    )
    assert not done.stderr, done.stderr[:300]
    return dict(entry.split(b"=", 1) for entry in done.stdout.split(b"\0") if entry)


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_source_what_was_written(shell: str, tmp_path: Path) -> None:
    needs_shell(SHELLS[shell][0])
    same_in_shells(shell, sh, "export {name}={value}\n", tmp_path)


def test_a_shell_reads_a_dotenv_file_as_it_was_meant(tmp_path: Path) -> None:
    same_in_shells("dash", dotenv_codec, "export {name}={value}\n", tmp_path)


def same_in_shells(shell: str, codec: ModuleType, line: str, folder: Path) -> None:
    """Batches, since an environment has a limited size."""
    pairs = accepted(codec.encode)
    file = folder / "values"
    for start in range(0, len(pairs), 2000):
        batch = names(pairs[start : start + 2000])
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(
                line.format(name=name, value=encoded) for name, (_, encoded) in batch.items()
            )
        found = sourced_by(SHELLS[shell], file)
        for name, (value, _) in batch.items():
            assert found[name.encode()] == value.encode(), repr(value)


@pytest.mark.parametrize("interpolate", [True, False])
def test_python_dotenv_reads_what_was_written(interpolate: bool, tmp_path: Path) -> None:
    written = names(accepted(dotenv_codec.encode))
    file = tmp_path / ".env"
    file.write_text("".join(f"{name}={encoded}\n" for name, (_, encoded) in written.items()))
    found = dotenv.dotenv_values(file, interpolate=interpolate)
    assert found == {name: value for name, (value, _) in written.items()}


def test_two_xml_parsers_read_the_plist_that_was_written() -> None:
    written = names(accepted(plist.encode))
    entries = "".join(f"<key>{n}</key><string>{enc}</string>" for n, (_, enc) in written.items())
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    text = f'{head}\n<plist version="1.0"><dict>{entries}</dict></plist>'
    expected = {name: value for name, (value, _) in written.items()}
    assert plist.decode(text) == expected
    assert plistlib.loads(text.encode()) == expected
    elements = etree.fromstring(text.encode(), etree.XMLParser(huge_tree=True))[0]
    assert [e.text or "" for e in elements.iterfind("string")] == list(expected.values())


def test_yaml_1_1_and_1_2_read_what_was_written() -> None:
    pairs = accepted(yaml_flow.encode)
    text = "".join(f"- {encoded}\n" for _, encoded in pairs)
    expected = [value for value, _ in pairs]
    assert yaml_flow.decode(text) == expected
    assert yaml.safe_load(text) == expected
    assert YAML(typ="safe", pure=True).load(io.StringIO(text)) == expected


def test_yaml_keeps_lists_mappings_and_words_apart() -> None:
    value = {"a": [1, True, None, "true", "null", "1"], "b": {"NO": -5}}
    for load in (yaml_flow.decode, yaml.safe_load, YAML(typ="safe", pure=True).load):
        assert load(yaml_flow.encode(value)) == value


@given(values.texts, values.texts)
def test_front_matter_keeps_value_and_body_apart(value: str, body: str) -> None:
    try:
        text = f"---\nname: {front_matter.encode(value)}\n---\n{front_matter.encode_body(body)}"
    except Unrepresentable:
        return
    assert front_matter.decode(text) == ({"name": value}, body)
    assert text.split("\n")[2] == "---"


def test_text_without_front_matter_is_refused() -> None:
    for text in ("", "# title\n", "\n---\na: 1\n---\n", "---\n- 1\n---\n"):
        with pytest.raises(ValueError, match="front matter"):
            front_matter.decode(text)


def test_homebrew_reads_what_was_written_by_its_own_rules() -> None:
    """As Homebrew does: split at line feeds, then at the first `=`, and strip; no unquoting."""
    pairs = accepted(homebrew_env.encode)
    text = "".join(f"V{at}={encoded}\n" for at, (_, encoded) in enumerate(pairs))
    lines = [line.partition("=")[2].strip(" \t\r\n\v\f\0") for line in text.split("\n")[:-1]]
    assert lines == [value for value, _ in pairs]
    assert list(homebrew_env.decode(text).values()) == lines
