"""Values of Ollama's variables: read as Ollama reads them, written in one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.model import address, duration, model_name
from fleetctl.model.variables import FREE, TYPED, agrees, in_words, kind_of


@pytest.mark.parametrize(
    ("key", "given", "text"),
    [
        ("keep_alive", -1, "-1"),
        ("keep_alive", "-5m", "-1"),
        ("keep_alive", "2562047h47m16.854775807s", "-1"),
        ("keep_alive", 0, "0s"),
        ("keep_alive", 300, "5m0s"),
        ("keep_alive", "24h", "24h0m0s"),
        ("load_timeout", "1h30m", "1h30m0s"),
        ("load_timeout", "1.5s", "1.5s"),
        ("load_timeout", 0, "-1"),
        ("load_timeout", "-5m", "-1"),
        ("host", "0.0.0.0", "0.0.0.0:11434"),
        ("host", "http://0.0.0.0:11434", "0.0.0.0:11434"),
        ("host", "http://mini", "mini:80"),
        ("host", ":8080", "0.0.0.0:8080"),
        ("host", "[::1]", "[::1]:11434"),
        ("host", "::", "[::]:11434"),
        ("flash_attention", True, "1"),
        ("no_cloud", False, "0"),
        ("origins", ["https://a", "app://b"], "https://a,app://b"),
        ("origins", "https://a,app://b", "https://a,app://b"),
        ("models_dir", "/srv/models/", "/srv/models"),
        ("num_parallel", 4, "4"),
    ],
)
def test_values_have_one_spelling(key: str, given: object, text: str) -> None:
    assert TYPED[key][1].read(given) == text


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("keep_alive", "forever"),
        ("keep_alive", True),
        ("keep_alive", "5 m"),
        ("keep_alive", ""),
        ("keep_alive", "999999999h"),
        ("host", "https://mini"),
        ("host", "mini:http"),
        ("host", "[::1"),
        ("host", "1.2.3.4.5"),
        ("host", "mini:1/path"),
        ("host", ""),
        ("host", "http://"),
        ("host", 11434),
        ("flash_attention", "yes"),
        ("flash_attention", 1),
        ("num_parallel", True),
        ("num_parallel", -1),
        ("num_parallel", 2**31),
        ("models_dir", "models"),
        ("models_dir", "/a\nb"),
        ("origins", {"a": 1}),
        ("origins", [1]),
        ("origins", [""]),
        ("origins", []),
        ("models_dir", "/x  "),
        ("models_dir", "/x'"),
    ],
)
def test_what_ollama_would_silently_replace_is_refused(key: str, given: object) -> None:
    with pytest.raises(ValueError, match=r"must|is not|has|is longer|names no|is empty"):
        TYPED[key][1].read(given)


def test_a_server_that_was_given_no_address_is_read_as_on_loopback() -> None:
    assert address.listen_address("") == "127.0.0.1:11434"
    assert address.listen_address("http://") == "127.0.0.1:80"
    assert address.listen_address(":11434") == "0.0.0.0:11434"


@pytest.mark.parametrize(
    ("variable", "given", "logged"),
    [
        ("OLLAMA_LOAD_TIMEOUT", 0, "2562047h47m16.854775807s"),
        ("OLLAMA_LOAD_TIMEOUT", "-1s", "2562047h47m16.854775807s"),
        ("OLLAMA_NOPRUNE", 1, "true"),
        ("OLLAMA_VULKAN", "false", "false"),
        ("OLLAMA_SCHED_SPREAD", True, "true"),
        ("OLLAMA_GPU_OVERHEAD", "04294967296", "4294967296"),
        ("OLLAMA_MAX_TRANSFER_STREAMS", 2, "2"),
        ("OLLAMA_REMOTES", "ollama.com", "[ollama.com]"),
        ("OLLAMA_REMOTES", "a.example,b.example", "[a.example b.example]"),
        ("CUDA_VISIBLE_DEVICES", -1, "-1"),
    ],
)
def test_a_value_agrees_with_what_ollama_logs_for_it(
    variable: str, given: object, logged: str
) -> None:
    kind = kind_of(variable)
    assert kind
    wanted = kind.read(given)
    assert agrees(variable, wanted, logged)
    assert agrees(variable, wanted, wanted)


def test_people_read_of_times_and_switches_in_words() -> None:
    assert in_words("OLLAMA_LOAD_TIMEOUT", "-1") == "-1 (forever)"
    assert in_words("OLLAMA_LOAD_TIMEOUT", "2562047h47m16.854775807s") == "-1 (forever)"
    assert in_words("OLLAMA_KEEP_ALIVE", "24h0m0s") == "24h"
    assert in_words("OLLAMA_KEEP_ALIVE", "10h30m0s") == "10h30m"
    assert in_words("OLLAMA_KEEP_ALIVE", "10m0s") == "10m"
    assert in_words("OLLAMA_KEEP_ALIVE", "1m30s") == "1m30s"
    assert in_words("OLLAMA_KEEP_ALIVE", "0s") == "0s"
    assert in_words("OLLAMA_KEEP_ALIVE", "") == "(default)"
    assert in_words("OLLAMA_NUM_PARALLEL", "0") == "(default)"
    assert in_words("OLLAMA_NOPRUNE", "true") == in_words("OLLAMA_NOPRUNE", "1") == "on"


@given(st.integers(-duration.LONGEST, duration.LONGEST))
def test_a_duration_reads_back_as_itself(nanoseconds: int) -> None:
    assert duration.parse(duration.to_text(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("qwen3", "qwen3:latest"),
        ("library/qwen3:8b", "qwen3:8b"),
        ("registry.ollama.ai/library/qwen3", "qwen3:latest"),
        ("me/mine:x", "me/mine:x"),
        ("hf.co/unsloth/Qwen3-GGUF:Q4_K_M", "hf.co/unsloth/Qwen3-GGUF:Q4_K_M"),
        ("127.0.0.1:5000/library/tiny", "127.0.0.1:5000/library/tiny:latest"),
    ],
)
def test_model_names_are_spelled_as_ollama_lists_them(text: str, name: str) -> None:
    assert model_name.normalise(text) == name
    assert model_name.normalise(name) == name


@pytest.mark.parametrize("text", ["", ":", "a:", "/a", "a b", "a/b/c/d/e", "../x", "-a", "a:b:c"])
def test_what_is_no_model_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a model name"):
        model_name.normalise(text)


def test_cloud_models_are_recognised() -> None:
    assert model_name.is_cloud("gpt-oss:120b-cloud")
    assert model_name.is_cloud("kimi:cloud")
    assert not model_name.is_cloud("cloud:latest")


def test_nothing_dangerous_is_free_to_be_set() -> None:
    for variable in FREE:
        assert not variable.startswith(("LD_", "DYLD_"))
        assert variable not in {"PATH", "HOME", "HTTP_PROXY", "OLLAMA_API_KEY"}
    assert not set(FREE) & {name for name, _ in TYPED.values()}


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for read in (address.listen_address, address.endpoint, model_name.normalise):
        try:
            once = read(text)
        except ValueError:
            continue
        assert read(once) == once
