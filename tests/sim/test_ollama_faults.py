"""The faults of the simulated Ollama, each provoked on a machine."""

import json
import time
from collections.abc import Iterator

import httpx
import pytest

from fleetsim.fleet import Fleet
from fleetsim.machine import Machine
from tests.sim.remote import Run, drop_in, eventually, listens, show, until_answering


@pytest.fixture
def ollama(machine: Machine) -> Iterator[httpx.Client]:
    until_answering(machine)
    with httpx.Client(base_url=machine.endpoint, timeout=10, trust_env=False) as client:
        yield client


def pull(ollama: httpx.Client, model: str) -> list[dict[str, object]]:
    answer = ollama.post("/api/pull", json={"model": model})
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


def test_start_can_fail_for_one_value_only(run: Run, machine: Machine) -> None:
    machine.behave(crash_on_start=True, when={"OLLAMA_KV_CACHE_TYPE": "q9"})
    drop_in(machine, "zz", "Environment=OLLAMA_KV_CACHE_TYPE=q9")
    run("systemctl --user daemon-reload; systemctl --user restart ollama")
    eventually(lambda: show(run, "SubState") == "auto-restart")
    assert "panic" in run("journalctl --user -u ollama -o cat -n 5").out
    drop_in(machine, "zz", "Environment=OLLAMA_KV_CACHE_TYPE=q8_0")
    run("systemctl --user daemon-reload; systemctl --user restart ollama")
    until_answering(machine)


def test_server_can_accept_and_never_answer(run: Run, machine: Machine) -> None:
    machine.behave(never_answer=True)
    run("systemctl --user restart ollama")
    eventually(lambda: listens(machine))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(machine.endpoint, timeout=0.5, trust_env=False)
    assert show(run, "ActiveState") == "active"


def test_server_can_crash_after_a_while(run: Run, machine: Machine) -> None:
    machine.behave(crash_after=0.4)
    run("systemctl --user restart ollama")
    until_answering(machine)
    eventually(lambda: show(run, "SubState") == "auto-restart")


def test_slow_start_accepts_before_it_serves(run: Run, machine: Machine) -> None:
    machine.behave(start_seconds=0.7)
    run("systemctl --user restart ollama")
    eventually(lambda: listens(machine))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(machine.endpoint, timeout=0.1, trust_env=False)
    assert httpx.get(machine.endpoint, timeout=5, trust_env=False).text == "Ollama is running"


def test_pull_downloads_a_model_of_the_library(ollama: httpx.Client) -> None:
    steps = pull(ollama, "other:8b")
    assert steps[-1] == {"status": "success"}
    first_of_a_layer = next(step for step in steps if "digest" in step)
    assert "completed" not in first_of_a_layer, "zero is omitted"
    listed = [model["name"] for model in ollama.get("/api/tags").json()["models"]]
    assert set(listed) == {"tiny:latest", "other:8b"}


def test_pull_of_an_unknown_model_is_an_error_inside_200(ollama: httpx.Client) -> None:
    error = {"error": "pull model manifest: file does not exist"}
    assert pull(ollama, "unknown")[-1] == error


@pytest.mark.parametrize(
    ("fault", "last"),
    [
        ("not-found", {"error": "pull model manifest: file does not exist"}),
        ("error", {"error": "max retries exceeded: unexpected EOF"}),
    ],
)
def test_pull_can_fail_inside_200(
    machine: Machine, ollama: httpx.Client, fault: str, last: dict[str, str]
) -> None:
    machine.behave(pull_faults={"other:8b": fault})
    assert pull(ollama, "other:8b")[-1] == last
    assert len(ollama.get("/api/tags").json()["models"]) == 1


def test_pull_can_end_without_success(machine: Machine, ollama: httpx.Client) -> None:
    machine.behave(pull_faults={"other:8b": "end"})
    assert "digest" in pull(ollama, "other:8b")[-1]
    assert len(ollama.get("/api/tags").json()["models"]) == 1


def test_pull_can_be_cut(machine: Machine, ollama: httpx.Client) -> None:
    machine.behave(pull_faults={"other:8b": "cut"})
    with pytest.raises(httpx.RemoteProtocolError):
        pull(ollama, "other:8b")


def test_pull_can_stall_and_repeat_its_progress(machine: Machine, ollama: httpx.Client) -> None:
    machine.behave(pull_faults={"other:8b": "stall"})
    with ollama.stream("POST", "/api/pull", json={"model": "other:8b"}) as answer:
        lines = answer.iter_lines()
        seen = [json.loads(next(lines)).get("completed") for _ in range(8)]
    assert len(set(seen[2:])) == 1
    machine.behave(pull_faults={})
    assert pull(ollama, "other:8b")[-1] == {"status": "success"}, "a retry succeeds"


def test_pull_takes_the_configured_time(machine: Machine, ollama: httpx.Client) -> None:
    machine.behave(pull_seconds=0.2)
    start = time.monotonic()
    pull(ollama, "other:8b")
    assert time.monotonic() - start > 0.4, "three layers: weights, template, config"


def test_gpu_memory_sets_the_default_context(fleet: Fleet) -> None:
    machine = fleet.linux("gpu", models=["tiny"], vram=24 * 2**30)
    until_answering(machine)
    with httpx.Client(base_url=machine.endpoint, trust_env=False) as ollama:
        ollama.post("/api/generate", json={"model": "tiny"})
        [loaded] = ollama.get("/api/ps").json()["models"]
    assert loaded["context_length"] == 32768
    assert loaded["size_vram"] == loaded["size"]


def test_wildcard_address_stays_on_loopback(run: Run, machine: Machine) -> None:
    drop_in(machine, "zz", "Environment=OLLAMA_HOST=0.0.0.0:11434")
    run("systemctl --user daemon-reload; systemctl --user restart ollama")
    until_answering(machine)
    eventually(lambda: "Listening on [::]:11434" in run("journalctl --user -u ollama -o cat").out)
    listeners = run("ss -Hltn").out.splitlines()
    mine = [line.split()[3] for line in listeners if f":{machine.ollama_port}" in line]
    assert mine == [f"127.0.0.1:{machine.ollama_port}"]
