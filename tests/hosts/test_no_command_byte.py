"""Who is not trusted gets no byte of a command. What the client sent before encryption begins can
be read in the proxy, and after that there must be nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.project import LabProject
from tests.lab.fixture_types import Shared
from tests.lab.lab import Lab
from tests.lab.proxy import proxy_to

pytestmark = [pytest.mark.host, pytest.mark.ollama]

KEXINIT, NEWKEYS, KEX_ECDH_INIT = 20, 21, 30


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> LabProject:
    return LabProject(lab, tmp_path)


@pytest.fixture
def other_key(tmp_path: Path) -> str:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True
    )
    return " ".join((tmp_path / "other.pub").read_text().split()[:2])


def sent_in_the_clear(heard: bytes) -> Iterator[int | bytes]:
    """The types of the messages up to NEWKEYS, and then whatever was encrypted, if anything."""
    banner, _, rest = heard.partition(b"\r\n")
    assert banner.startswith(b"SSH-2.0-")
    kind = 0
    while rest and kind != NEWKEYS:
        length = int.from_bytes(rest[:4], "big")
        kind = rest[5]
        yield kind
        rest = rest[4 + length :]
    if rest:
        yield rest


@pytest.mark.parametrize("as_jump", [False, True], ids=["node", "jump host"])
@pytest.mark.parametrize(
    ("fault", "says", "sent"),
    [
        ("unknown", "its host key is not known: SHA256:", [KEXINIT, KEX_ECDH_INIT, NEWKEYS]),
        ("changed", "HAS CHANGED from SHA256:", [KEXINIT, KEX_ECDH_INIT, NEWKEYS]),
        ("weak", "offers only outdated algorithms", [KEXINIT]),
    ],
    ids=["unknown", "changed", "weak"],
)
def test_who_is_not_trusted_gets_no_command_byte(
    fault: str,
    says: str,
    sent: list[int],
    as_jump: bool,
    shared: Shared,
    project: LabProject,
    lab: Lab,
    other_key: str,
) -> None:
    node = shared("bare+weak-ssh" if fault == "weak" else "installer")
    logins = "journalctl -u ssh -o cat | grep -c 'for ada' || :"
    before = lab.ssh(node, logins, root=True)
    with proxy_to(node.address, 22) as proxy:
        name = f"[127.0.0.1]:{proxy.port}"
        project.lead_through(node, proxy.port)
        if as_jump:
            project.nodes[node.name]["ssh"] |= {
                "host": "10.97.99.1",
                "port": 22,
                "jump": f"ada@127.0.0.1:{proxy.port}",
            }
        if fault != "weak":
            project.know(f"{name} {other_key}\n" if fault == "changed" else "")
        outcome = project("check").exits(8)
    assert says in outcome.out
    assert ("the jump host" in outcome.out) == as_jump
    assert list(sent_in_the_clear(bytes(proxy.heard))) == sent
    assert lab.ssh(node, logins, root=True) == before


def test_the_same_look_sees_a_login(shared: Shared, project: LabProject) -> None:
    """So that the test above can fail."""
    node = shared("installer")
    with proxy_to(node.address, 22) as proxy:
        project.lead_through(node, proxy.port)
        project("check").exits(3)
    *clear, encrypted = sent_in_the_clear(bytes(proxy.heard))
    assert clear == [KEXINIT, KEX_ECDH_INIT, NEWKEYS]
    assert isinstance(encrypted, bytes)
