"""A node is a stranger: whatever it says stays text, within bounds, and harms nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fleet_fixtures import Project
from tests.sim.remote import until_answering

EVIL = "{{7*7}} $(id) `id` ../../x \x1b]52;c;aGk=\x07\x1b[2J \u202e ${HOME} <script> %s \\"


def shadow(project: Project, tool: str, script: str) -> None:
    """Replace a tool of the machine by one that lies."""
    machine = project.fleet.machines["evil"]
    path = machine.folder / "bin" / tool
    path.unlink()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def evil(project: Project) -> Project:
    machine = project.add("evil")
    other = project.add("good")
    until_answering(machine, other)
    return project


def both_states(project: Project) -> dict[str, str]:
    outcome = project.fleetctl("check", "--json", "--timeout", "10")
    assert "Traceback" not in outcome.err
    nodes = json.loads(outcome.out)["nodes"]
    assert nodes["good"]["state"] == "drift"
    return {name: node["state"] for name, node in nodes.items()}


def lying_unit(value: str) -> str:
    """A systemctl whose unit has a hostile value in everything that is shown."""
    quoted = value.replace("'", "'\\''")
    return (
        f"printf '%s\\n' 'LoadState=loaded' 'ActiveState=active' 'UnitFileState={quoted}' "
        f"'FragmentPath={quoted}' 'DropInPaths={quoted}' 'EnvironmentFiles={quoted}' "
        f"'MainPID={quoted}' 'InvocationID={quoted}' 'NRestarts={quoted}' 'User={quoted}'"
    )


@pytest.mark.parametrize(
    "value", [EVIL, "9" * 400, "-1", "/etc/passwd", "/dev/zero", "x\\ny=z", "é\ud7ff\u0000"]
)
def test_hostile_values_stay_text(value: str, evil: Project) -> None:
    shadow(evil, "systemctl", lying_unit(value.replace("\0", "")))
    both_states(evil)
    outcome = evil.fleetctl("check")
    assert outcome.code in (3, 5)
    assert "\x1b" not in outcome.out + outcome.err
    assert "\u202e" not in outcome.out
    assert "49" not in outcome.out.replace(value, "")
    assert not (evil.fleetctl.folder / "x").exists()


def test_hostile_names_of_files_and_programs_stay_text(evil: Project) -> None:
    shadow(evil, "uname", f"cat <<'END'\n{EVIL}\nEND")
    shadow(evil, "id", f"cat <<'END'\nuid=99999999999999999999({EVIL})\nEND")
    shadow(evil, "ip", f"cat <<'END'\n1: lo inet 999.999.1.1 inet6 ::::: {EVIL}\nEND")
    both_states(evil)
    assert "\x1b" not in evil.fleetctl("check").out


def test_fault_71_endless_output_is_cut_off_and_memory_bounded(evil: Project) -> None:
    shadow(evil, "ip", "while :; do head -c 1000000 /dev/zero; done")
    assert both_states(evil)["evil"] == "failed"
    out = evil.fleetctl("check").exits(5).out
    assert "evil: failed: it printed more than 8 MiB" in out


def test_nul_and_bytes_that_are_no_text_are_survived(evil: Project) -> None:
    shadow(evil, "ip", "printf 'inet 10.0.0.1\\000\\377\\376 inet 10.0.0.2\\n'")
    assert both_states(evil)["evil"] == "drift"


def test_a_forged_record_without_the_nonce_is_plain_text(evil: Project) -> None:
    shadow(evil, "ip", "printf '\\n@@deadbeef < addresses 0\\n\\n@@deadbeef .\\n'")
    assert both_states(evil)["evil"] == "drift"


def test_a_shell_that_dies_half_way_is_a_failure_of_that_node(evil: Project) -> None:
    shadow(evil, "ip", "kill -9 0")
    assert both_states(evil)["evil"] == "unreachable"
    assert "the answer is truncated" in evil.fleetctl("check").exits(4).out


@pytest.mark.parametrize(
    "answer",
    [
        '{"models": [{"name": "' + "x" * 100_000 + '"}]}',
        '{"models": "' + EVIL.replace("\\", "").replace("\x1b", "").replace("\x07", "") + '"}',
        '{"version": NaN}',
        "[" * 100_000,
        "<html>502 Bad Gateway</html>",
        "",
    ],
    ids=["long", "wrong type", "NaN", "deep", "html", "empty"],
)
def test_a_hostile_api_is_not_known_and_no_crash(
    answer: str, evil: Project, tmp_path: Path
) -> None:
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = answer.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Be quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    evil.nodes["local"] = {
        "ssh": {"host": "localhost"},
        "ollama": {"host": f"127.0.0.1:{server.server_port}"},
    }
    evil.write(models={"m": {"node": "local", "ollama_model": "qwen3"}})
    outcome = evil.fleetctl("check", "--limit", "local")
    server.shutdown()
    server.server_close()
    assert outcome.code == 3, outcome.err
    assert "\x1b" not in outcome.out
