"""Scripts and records, run by every shell that may be a node's /bin/sh."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl import restore
from fleetctl.gather import all_questions
from fleetctl.inventory import parse as parse_inventory
from fleetctl.playbook import read_playbook
from fleetctl.shell import HOST, Garbled, Question, parse, quote, script, survey
from fleetsim.mac import REPORT
from tests import values
from tests.conftest import needs_shell
from tests.facts import target_of

NONCE = "0123456789abcdef"
SHELLS = {
    "dash": ["dash", "-s"],
    "bash --posix": ["bash", "--posix", "-s"],
    "bash": ["bash", "-s"],
    "busybox sh": ["busybox", "sh", "-s"],
    "mksh": ["mksh", "-s"],
    "zsh as sh": ["zsh", "--emulate", "sh", "-f", "-s"],
}
QUESTIONS = [
    Question("plain", "echo hello"),
    Question("fails", "echo some; echo why >&2; exit 3"),
    Question("no newline", "printf abc"),
    Question("empty", ":"),
    Question("eats input", "cat"),
    Question("not there", "no-such-command-at-all"),
    Question("nul", "printf 'a\\000b\\377c\\n\\n'"),
    Question("forged", "printf '\\n@@fedcba9876543210 > plain\\n'; echo '@@ < plain 0'"),
    Question("sections", 'echo a; for f in \'b c\' d; do section "$f"; printf %s "$f"; done'),
    Question("variables", "x=1; cd /; exec 3>&1"),
    Question("last", 'echo "${x-unset} $(pwd | wc -l)"'),
]


def run(shell: str, text: str, after: str = "") -> bytes:
    needs_shell(SHELLS[shell][0])
    done = subprocess.run(SHELLS[shell], input=(text + after).encode(), capture_output=True)
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_every_part_answers_for_itself(shell: str) -> None:
    records = parse(run(shell, script(QUESTIONS, NONCE), "echo more input\n"), NONCE)
    assert [record.status for record in records.values()] == [0, 3, 0, 0, 0, 127, 0, 0, 0, 0, 0]
    assert records["plain"].text == "hello\n"
    assert records["fails"].text == "some\n"
    assert records["no newline"].text == "abc"
    assert records["empty"].output == b""
    assert records["eats input"].output == b""
    assert records["nul"].output == b"a\0b\xffc\n\n"
    assert records["forged"].output.count(b"@@") == 2
    assert records["sections"].text == "a\n"
    assert records["sections"].sections == {"b c": b"b c", "d": b"d"}
    assert records["last"].text.split() == ["unset", "1"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_cut_script_does_not_start(shell: str) -> None:
    text = script([Question("plain", "echo started")], NONCE)
    for length in range(0, text.rindex("}") + 1, 7):
        assert b"started" not in run(shell, text[:length])


def test_noise_around_the_records_is_ignored() -> None:
    output = run("dash", script(QUESTIONS, NONCE))
    noisy = parse(b"Welcome!\n\x1b[2J" + output + b"logout\n", NONCE)
    assert noisy == parse(output, NONCE)


def test_a_cut_answer_is_noticed_wherever_it_was_cut() -> None:
    output = run("dash", script(QUESTIONS, NONCE))
    for length in range(output.rindex(b".")):
        with pytest.raises(Garbled):
            parse(output[:length], NONCE)


@given(st.lists(values.texts, max_size=5))
def test_quoted_values_arrive_unaltered(texts: list[str]) -> None:
    clean = [text for text in texts if "\0" not in text and text.isprintable()]
    parts = [Question(f"k{at}", f"printf %s {quote(text)}") for at, text in enumerate(clean)]
    records = parse(run("dash", script(parts, NONCE)), NONCE)
    assert [record.text for record in records.values()] == clean


@given(st.binary(max_size=200))
def test_any_answer_is_parsed_or_refused(data: bytes) -> None:
    for output in (data, f"\n@@{NONCE} ".encode() + data, data + f"\n@@{NONCE} .\n".encode()):
        try:
            parse(output, NONCE)
        except Garbled:
            continue


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_can_read_all_that_is_sent(shell: str, tmp_path: Path) -> None:
    """Also what only the other system would run: one syntax error, and nothing runs at all."""
    needs_shell(SHELLS[shell][0])
    fleet, _ = parse_inventory(b"nodes: {box: {}}", tmp_path / "fleet.yaml")
    target = target_of(fleet)
    playbook = read_playbook("provision", tmp_path)
    asked = [question for entry in playbook for question in entry.questions(target)]
    asked = [*all_questions(target, asked), *restore.questions(target, None)]
    *program, _ = SHELLS[shell]
    for text in (script(asked, NONCE), REPORT.read_text()):
        done = subprocess.run([*program, "-n"], input=text.encode(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


def test_ports_are_read_whatever_else_a_machine_says() -> None:
    text = "0x2CAA\n11434\n0x\n007\nport\n99999999\n0xZZ\n$(id)\n"
    assert survey.ports(text) == [11434, 11434, 7]
    ask = f"{HOST}\n{survey.ask_ports('LISTEN')}".encode()
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = subprocess.run(["/bin/sh"], input=ask, capture_output=True)
        assert server.getsockname()[1] in survey.ports(done.stdout.decode())
    assert done.returncode == 0
