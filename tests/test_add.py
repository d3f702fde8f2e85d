"""A machine that is not in the inventory yet: what is asked, what is said, what is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pytest

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import load
from fleetctl.join import _name_of, _ssh
from fleetsim.machine import Machine
from tests.adding import Adding
from tests.fleet_fixtures import Project, snapshot
from tests.sim.remote import until_answering

SECRET = "open, sesame $HOME '"


@pytest.fixture
def box(project: Project) -> Machine:
    machine = project.fleet.linux("box", models=["tiny"])
    until_answering(machine)
    return machine


@pytest.fixture
def home(project: Project) -> Path:
    """A home with the key that opens the machines."""
    home = project.fleet.folder.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    shutil.copy(project.fleet.identity_file, home / ".ssh" / "id_ed25519")
    return home


@pytest.fixture
def add(project: Project, home: Path) -> Adding:
    return Adding(project.fleetctl.folder, home)


@pytest.fixture
def target(box: Machine) -> str:
    return f"{box.user}@{box.host}:{box.port}"


def files(add: Adding) -> list[str]:
    return sorted(str(path.relative_to(add.folder)) for path in add.folder.rglob("*"))


# --- the whole way ---


def test_from_an_empty_folder_to_a_node(add: Adding, box: Machine, target: str) -> None:
    outcome = add(target, "--yes", "--fingerprint", box.fingerprint).exits(0)
    assert outcome.json == {"format": 1, "file": "fleet.yaml", "node": "box"}
    assert (add.folder / "fleet.yaml").read_text() == (
        f'nodes:\n  box:\n    ssh: {{host: "127.0.0.1", user: "ada", port: {box.port}}}\n'
    )
    assert "Ollama 0.24.0 as a user service, 1 model" in outcome.err
    assert f'+     ssh: {{host: "127.0.0.1", user: "ada", port: {box.port}}}' in outcome.err
    fleet, _ = load(add.folder / "fleet.yaml")
    assert fleet.nodes["box"].ssh is not None
    known = add.folder / ".fleetctl" / "known_hosts"
    assert known.read_text() == box.known_hosts_line + "\n"
    assert (add.folder / ".fleetctl" / ".gitignore").read_text() == "*\n"


def test_what_was_added_can_be_checked(
    project: Project, add: Adding, box: Machine, target: str
) -> None:
    add(target, "--yes", "--fingerprint", box.fingerprint).exits(0)
    key = str(project.fleet.identity_file)
    file = add.folder / "fleet.yaml"
    file.write_text(f"defaults: {{ssh: {{identity_file: {key}}}}}\n" + file.read_text())
    out = project.fleetctl("check").exits(3).out
    assert "box: OLLAMA_KEEP_ALIVE 5m → -1 (forever)" in out


def test_the_rest_of_the_file_and_the_file_stay_what_they_were(
    add: Adding, box: Machine, target: str
) -> None:
    text = "# my fleet\ngroups: {minis: {}}\nnodes:\n  a: {ssh: {host: a}}  # the first\n# end\n"
    file = add.folder / "real.yaml"
    file.write_text(text)
    file.chmod(0o640)
    (add.folder / "fleet.yaml").symlink_to("real.yaml")
    options = ("--as", "mini", "--group", "minis", "--fingerprint", box.fingerprint)
    add(target, "--yes", *options).exits(0)
    line = (
        f'  mini: {{ssh: {{host: "127.0.0.1", user: "ada", port: {box.port}}}, groups: ["minis"]}}'
    )
    assert file.read_text() == text.replace("# end", f"{line}\n# end")
    assert file.stat().st_mode & 0o777 == 0o640
    assert (add.folder / "fleet.yaml").is_symlink()


def test_the_user_and_the_key_may_come_from_the_defaults(
    project: Project, add: Adding, box: Machine
) -> None:
    shutil.rmtree(add.home / ".ssh")
    file = add.folder / "inventory" / "fleet.yaml"
    file.parent.mkdir()
    key = project.fleet.identity_file
    file.write_text(f"defaults: {{ssh: {{user: ada, identity_file: {key}}}}}\n")
    outcome = add(f"127.0.0.1:{box.port}", "--yes", "--fingerprint", box.fingerprint).exits(0)
    assert outcome.json["file"] == "inventory/fleet.yaml"
    assert f'ssh: {{host: "127.0.0.1", port: {box.port}}}' in file.read_text()
    assert (add.folder / ".fleetctl" / "known_hosts").exists()


# --- questions ---


def test_on_a_terminal_the_key_and_the_lines_are_asked_about(
    add: Adding, box: Machine, target: str
) -> None:
    answers = {"Is it right?": "yes", "Write this into fleet.yaml?": "y"}
    outcome = add.on_terminal(target, answers=answers).exits(0)
    assert box.fingerprint in outcome.err
    assert "added box to fleet.yaml" in outcome.err


def test_no_is_no(add: Adding, box: Machine, target: str) -> None:
    answers = {"Is it right?": "yes", "Write this into fleet.yaml?": "n"}
    add.on_terminal(target, answers=answers).exits(3)
    assert not (add.folder / "fleet.yaml").exists()
    (add.folder / ".fleetctl" / "known_hosts").unlink()
    refused = add.on_terminal(target, answers={"Is it right?": "no"}).exits(8)
    assert f"--fingerprint {box.fingerprint}" in refused.err
    assert not (add.folder / ".fleetctl" / "known_hosts").exists()


def test_without_a_terminal_nothing_is_written_unless_it_is_said(
    add: Adding, box: Machine, target: str
) -> None:
    outcome = add(target, "--fingerprint", box.fingerprint).exits(3)
    assert "+   box:" in outcome.err
    assert "--yes" in outcome.err
    assert not (add.folder / "fleet.yaml").exists()


@pytest.mark.parametrize("yes", [[], ["--yes"]])
def test_an_unknown_host_key_stops_it_with_the_command_that_goes_on(
    yes: list[str], add: Adding, box: Machine, target: str
) -> None:
    outcome = add(target, *yes).exits(8)
    again = f"fleetctl provision --add {target} --fingerprint {box.fingerprint}"
    assert f"then: {again}" in outcome.err
    wrong = add(target, *yes, "--fingerprint", "SHA256:wrong").exits(8)
    assert f"shows {box.fingerprint}, not SHA256:wrong" in wrong.err
    assert files(add) == []


def test_a_changed_host_key_cannot_be_talked_away(
    project: Project, add: Adding, box: Machine, target: str
) -> None:
    project.trust(box)
    known = add.folder / ".fleetctl" / "known_hosts"
    other = project.fleet.linux("other", ollama="absent")
    known.write_text(known.read_text().replace(box.host_key, other.host_key))
    before = known.read_bytes()
    outcome = add(target, "--yes", "--fingerprint", box.fingerprint).exits(8)
    assert "HAS CHANGED" in outcome.err
    assert "fleetctl trust" not in outcome.err
    assert f"delete [127.0.0.1]:{box.port} from" in outcome.err
    assert known.read_bytes() == before


# --- what is wrong before anything is contacted ---


@pytest.mark.slow
def test_wrong_wishes_are_refused_before_anything_is_contacted(add: Adding) -> None:
    file = add.folder / "fleet.yaml"
    file.write_text("groups: {minis: {}}\nnodes: {mini: {}}\n")
    nobody = "ada@127.0.0.1:1"  # would be exit 4
    wrong = {
        ("ada@mini.local",): "there is a node 'mini' already",
        (nobody, "--as", "mini"): "--as NAME",
        (nobody, "--as", "controller"): "choose another name",
        (nobody, "--as", "-x"): "is not a name",
        (nobody, "--group", "macs"): "known: minis",
        ("ada@mini:22", "--as", "other"): "is the same machine as 'mini'",
        ("ada@",): "is not [user@]host[:port]",
        ("@host",): "is not [user@]host[:port]",
        ("ada:secret@host",): "is not [user@]host[:port]",
        ("host:0",): "a port is a number",
        ("a b",): "is not a host name",
    }
    for arguments, message in wrong.items():
        assert message in add(*arguments, "--yes").exits(2).err
    file.write_text("nodes: [\n")
    assert "not valid YAML" in add(nobody, "--yes").exits(2).err


@pytest.mark.parametrize("text", ["nodes: {a: {}}\n", '{"nodes": {"a": {}}}\n', "nodes: null\n"])
def test_a_file_not_in_block_style_gets_the_lines_to_add_by_hand(add: Adding, text: str) -> None:
    file = add.folder / "fleet.yaml"
    file.write_text(text)
    outcome = add("ada@127.0.0.1:1", "--as", "box", "--yes").exits(2)
    assert "nothing was written to fleet.yaml" in outcome.err
    assert 'nodes:\n  box:\n    ssh: {host: "127.0.0.1", user: "ada", port: 1}\n' in outcome.err
    assert file.read_text() == text
    assert files(add) == ["fleet.yaml"]


def test_a_machine_that_does_not_answer_is_exit_4(add: Adding) -> None:
    assert "refused the connection" in add("ada@127.0.0.1:1", "--yes").exits(4).err
    assert files(add) == []


@pytest.mark.parametrize(
    ("target", "ssh"),
    [
        ("host", {"host": "host"}),
        ("ada@mini-64.local", {"host": "mini-64.local", "user": "ada"}),
        ("host:2222", {"host": "host", "port": 2222}),
        ("ada@[fd00::1]:22", {"host": "fd00::1", "user": "ada", "port": 22}),
        ("[fd00::1]", {"host": "fd00::1"}),
        ("fe80::1%eth0", {"host": "fe80::1%eth0"}),
        ("a@b@host", {"host": "host", "user": "a@b"}),
    ],
)
def test_targets(target: str, ssh: dict[str, object]) -> None:
    assert _ssh(target) == ssh


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Mini-64.local", "mini-64"),
        ("_x.example.org", "x"),
        ("10.0.0.1", None),
        ("fd00::1", None),
    ],
)
def test_names_after_hosts(host: str, name: str | None) -> None:
    assert _name_of(host) == name


def test_a_machine_without_a_name_of_its_own_needs_one(project: Project, add: Adding) -> None:
    machine = project.fleet.linux("localhost", ollama="absent")
    target = f"ada@127.0.0.1:{machine.port}"
    options = ("--yes", "--fingerprint", machine.fingerprint)
    assert "--as NAME" in add(target, *options).exits(2).err
    outcome = add(target, *options, "--as", "bare").exits(0)
    assert "bare: " in outcome.err
    assert "without Ollama" in outcome.err


# --- with a password ---


def lock_out(machine: Machine, method: Literal["password", "keyboard-interactive"]) -> None:
    """Only a password opens it."""
    shutil.rmtree(machine.home / ".ssh")
    machine.passwords.accepted, machine.passwords.method = SECRET, method


@pytest.fixture
def secret(add: Adding) -> Path:
    file = add.home / "secret"
    file.write_text(f"{SECRET}\n")
    return file


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_a_password_lets_the_key_in_once_and_for_all(
    method: Literal["password", "keyboard-interactive"], add: Adding, box: Machine, target: str
) -> None:
    lock_out(box, method)
    without = add(target, "--yes", "--fingerprint", box.fingerprint).exits(4)
    assert f"fleetctl provision --add {target} --ask-password" in without.err
    answers = {"Password": SECRET, "Write this": "y"}
    outcome = add.on_terminal(target, "--ask-password", answers=answers).exits(0)
    assert "your key is in its ~/.ssh/authorized_keys now" in outcome.err
    assert SECRET not in outcome.err
    folder, keys = box.home / ".ssh", box.home / ".ssh" / "authorized_keys"
    assert (folder.stat().st_mode & 0o777, keys.stat().st_mode & 0o777) == (0o700, 0o600)
    public = box.identity_file.with_suffix(".pub").read_text().strip()
    assert keys.read_text() == f"{public} fleetctl\n"
    assert box.passwords.tried == [SECRET]
    before = snapshot(folder)
    again = add(target, "--as", "box2", "--yes", "--ask-password", "-i", "other.yaml").exits(0)
    assert "your key is accepted already" in again.err
    assert (snapshot(folder), box.passwords.tried) == (before, [SECRET])


@pytest.mark.parametrize("end", ["", "\n"])
def test_keys_that_are_there_stay_and_none_is_added_twice(
    end: str, add: Adding, box: Machine, target: str, secret: Path
) -> None:
    keys = box.home / ".ssh" / "authorized_keys"
    public = keys.read_text().strip()
    there = f"# {public}\nssh-rsa AAAA somebody@else{end}"
    keys.write_text(there)
    keys.chmod(0o644)  # theirs to choose
    box.passwords.accepted = SECRET
    options = ("--yes", "--fingerprint", box.fingerprint, "--password-file", str(secret))
    add(target, *options).exits(0)
    after = there.rstrip("\n") + f"\n{public} fleetctl\n"
    assert keys.read_text() == after
    assert keys.stat().st_mode & 0o777 == 0o644


def test_a_wrong_password_is_tried_once(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    lock_out(box, "password")
    secret.write_text("wrong\n")
    options = ("--yes", "--fingerprint", box.fingerprint, "--password-file", str(secret))
    outcome = add(target, *options).exits(4)
    assert "login as ada was refused (tried a password)" in outcome.err
    assert "check the user and the password" in outcome.err
    assert box.passwords.tried == ["wrong"]
    assert not (box.home / ".ssh").exists()
    assert not (add.folder / "fleet.yaml").exists()


def test_a_server_that_takes_no_passwords_says_so(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    shutil.rmtree(box.home / ".ssh")
    options = ("--yes", "--fingerprint", box.fingerprint, "--password-file", str(secret))
    assert "takes no password, only publickey" in add(target, *options).exits(4).err


def test_the_password_is_not_sent_to_a_machine_whose_key_is_not_accepted(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    lock_out(box, "password")
    add(target, "--yes", "--password-file", str(secret)).exits(8)
    add(target, "--yes", "--password-file", str(secret), "--fingerprint", "SHA256:no").exits(8)
    assert box.passwords.tried == []


def test_a_password_without_a_terminal_and_without_yes_changes_nothing(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    lock_out(box, "password")
    trusted = ("--fingerprint", box.fingerprint)
    outcome = add(target, *trusted, "--password-file", str(secret)).exits(3)
    assert "--yes" in outcome.err
    assert "without a terminal" in add(target, *trusted, "--yes", "--ask-password").exits(2).err
    assert box.passwords.tried == []
    assert not (box.home / ".ssh").exists()


def test_without_a_key_of_ones_own_there_is_nothing_to_let_in(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    lock_out(box, "password")
    (add.home / ".ssh" / "id_ed25519").unlink()
    options = ("--yes", "--fingerprint", box.fingerprint, "--password-file", str(secret))
    assert "ssh-keygen" in add(target, *options).exits(4).err
    assert box.passwords.tried == []


def test_a_home_that_cannot_be_written_to_is_said(
    add: Adding, box: Machine, target: str, secret: Path
) -> None:
    lock_out(box, "password")
    (box.home / ".ssh").symlink_to("nowhere")
    options = ("--yes", "--fingerprint", box.fingerprint, "--password-file", str(secret))
    assert "could not be put into" in add(target, *options).exits(5).err


def test_an_inventory_that_somebody_else_changes_meanwhile_is_left_alone(
    add: Adding, box: Machine, target: str
) -> None:
    from fleetctl.inventory import with_node
    from fleetctl.join import _write

    file = add.folder / "fleet.yaml"
    file.write_text("nodes:\n")
    edited = with_node(b"nodes:\n", file, "x", {"ssh": {"host": "x"}})
    file.write_text("nodes:  # edited\n")
    with pytest.raises(FleetError, match="was changed meanwhile") as caught:
        _write(edited, file, b"nodes:\n")
    assert caught.value.exit_code == Exit.FAILED
    assert file.read_text() == "nodes:  # edited\n"
