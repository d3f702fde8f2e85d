"""The real Ollama, the stand-in registry and its faults."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.fixture_types import SetFault, Shared
from tests.lab.lab import Lab
from tests.lab.models import CONTEXT, MODELS
from tests.lab.node import Node
from tests.lab.ollama_api import ask, stream
from tests.lab.registry import Fault, set_fault

pytestmark = [pytest.mark.host, pytest.mark.ollama]

FAULTY = "qwen3:8b"


@pytest.fixture
def node(shared: Shared) -> Node:
    return shared("installer+foreign-dropin")


@pytest.fixture
def fault(lab: Lab, node: Node) -> Iterator[SetFault]:
    yield lambda kind: set_fault(lab.state, FAULTY, kind)
    set_fault(lab.state, FAULTY, None)
    ask(node, "/api/delete", {"model": FAULTY}, method="DELETE")


def pull(node: Node, model: str) -> Any:
    return ask(node, "/api/pull", {"model": model})


def ranges_asked(lab: Lab) -> int:
    entries = map(json.loads, (lab.state / "registry.log").read_text().splitlines())
    return sum(entry["range"] is not None for entry in entries)


def test_real_model_name_is_pulled_loaded_and_answers(node: Node) -> None:
    name = "qwen2.5-coder:7b"
    assert pull(node, name) == {"status": "success"}
    assert name in [model["name"] for model in ask(node, "/api/tags")["models"]]
    answer = ask(node, "/api/generate", {"model": name, "prompt": "Who are you?", "stream": False})
    assert answer["response"] == MODELS[name].says
    assert [model["name"] for model in ask(node, "/api/ps")["models"]] == [name]


def test_ipv6_only_node_pulls_too(shared: Shared, lab: Lab) -> None:
    node = shared("installer+foreign-dropin+ipv6-only")
    assert "success" in lab.ssh(node, "ollama pull qwen3-coder:30b 2>&1")


def test_scripted_model_calls_a_tool_and_then_speaks(node: Node) -> None:
    name = "scripted"
    script = MODELS["scripted:latest"]
    assert pull(node, name) == {"status": "success"}
    shown = ask(node, "/api/show", {"model": name})
    assert "tools" in shown["capabilities"]
    assert shown["model_info"]["llama.context_length"] == CONTEXT

    messages: list[object] = [{"role": "user", "content": "Read the file."}]
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = {"name": script.tool, "description": "Reads", "parameters": parameters}
    request = {"model": name, "stream": False, "tools": [{"type": "function", "function": tool}]}
    reply = ask(node, "/api/chat", {**request, "messages": messages})["message"]
    (call,) = reply["tool_calls"]
    assert call["function"]["name"] == script.tool
    assert call["function"]["arguments"] == script.arguments

    messages += [reply, {"role": "tool", "tool_name": script.tool, "content": "# fleetctl"}]
    reply = ask(node, "/api/chat", {**request, "messages": messages})["message"]
    assert reply["content"] == script.says
    assert "tool_calls" not in reply


def test_endless_model_talks_until_it_is_stopped(node: Node) -> None:
    assert pull(node, "endless") == {"status": "success"}
    words = stream(node, "/api/generate", {"model": "endless", "prompt": "Go on."})
    assert [next(words)["response"] for _ in range(20)][1:] == ["and so on "] * 19


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Fault.NOT_FOUND, "file does not exist"),
        (Fault.TOO_MANY, "429"),
        (Fault.SERVER_ERROR, "500"),
        (Fault.HTML, "invalid character '<'"),
        (Fault.WRONG_DIGEST, "digest mismatch"),
    ],
)
def test_fault_is_reported_by_ollama_and_can_be_put_right(
    kind: Fault, error: str, fault: SetFault, node: Node
) -> None:
    fault(kind)
    assert error in pull(node, FAULTY)["error"]
    fault(None)
    assert pull(node, FAULTY) == {"status": "success"}


def test_unknown_model_does_not_exist(node: Node) -> None:
    assert "file does not exist" in pull(node, "never-heard-of:1b")["error"]


def test_slow_registry_takes_its_time(fault: SetFault, node: Node) -> None:
    fault(Fault.SLOW)
    begin = time.monotonic()
    assert pull(node, FAULTY) == {"status": "success"}
    assert time.monotonic() - begin > 2


def test_cut_download_is_resumed(fault: SetFault, node: Node, lab: Lab) -> None:
    fault(Fault.CUT)
    before = ranges_asked(lab)
    progress = stream(node, "/api/pull", {"model": FAULTY})
    while ranges_asked(lab) == before:
        next(progress)
    fault(None)
    assert list(progress)[-1] == {"status": "success"}
    assert ranges_asked(lab) > before + 1


def test_stalled_download_makes_no_progress(fault: SetFault, node: Node) -> None:
    fault(Fault.STALL)
    begin = time.monotonic()
    seen = []
    for progress in stream(node, "/api/pull", {"model": FAULTY}):
        seen.append((progress.get("completed", 0), progress.get("total")))
        if time.monotonic() - begin > 3:
            break
    completed, total = seen[-1]
    assert seen[-10:] == [(completed, total)] * 10
    assert completed < total
    fault(None)
    assert pull(node, FAULTY) == {"status": "success"}
