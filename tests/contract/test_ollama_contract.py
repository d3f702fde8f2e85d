"""What fleetctl relies on in Ollama, tested on the simulated and on the real server.

Where the two differ, the simulation is wrong."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.loopback_registry import Registry
from tests.contract.servers import Server, Start, free_port
from tests.contract.tiny_model import PARAMETERS, TRAINED_CONTEXT, tiny_model

DETAILS = {
    "parent_model", "format", "family", "families", "parameter_size", "quantization_level",
}  # fmt: skip
DIGEST = re.compile(r"[0-9a-f]{64}")


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]


def create(ollama: httpx.Client, model: str, **fields: object) -> list[dict[str, Any]]:
    return lines(ollama.post("/api/create", json={"model": model, **fields}))


def names(ollama: httpx.Client) -> list[str]:
    return [model["name"] for model in ollama.get("/api/tags").json()["models"]]


def load(ollama: httpx.Client, model: str = "tiny", **fields: object) -> dict[str, Any]:
    answer = ollama.post("/api/generate", json={"model": model, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def only_loaded(ollama: httpx.Client) -> dict[str, Any]:
    [model] = ollama.get("/api/ps").json()["models"]
    assert isinstance(model, dict)
    return model


def instant(text: str) -> datetime:
    """Parse a time: Go writes nine digits of a second, Python reads six."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


class TestServer:
    def test_root_reports_that_ollama_is_running(self, ollama: httpx.Client) -> None:
        answer = ollama.get("/")
        assert (answer.status_code, answer.text) == (200, "Ollama is running")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"

    def test_version_route_has_only_the_version(self, ollama: httpx.Client) -> None:
        answer = ollama.get("/api/version")
        assert answer.json() == {"version": "0.24.0"}
        assert answer.headers["content-type"] == "application/json; charset=utf-8"

    def test_head_has_the_status_and_no_body(self, ollama: httpx.Client) -> None:
        for path in ("/", "/api/version", "/api/tags"):
            answer = ollama.head(path)
            assert (answer.status_code, answer.content) == (200, b"")

    def test_unknown_route_is_404_in_plain_text(self, ollama: httpx.Client) -> None:
        answer = ollama.get("/api/nothing")
        assert (answer.status_code, answer.text) == (404, "404 page not found")

    def test_wrong_method_is_405(self, ollama: httpx.Client) -> None:
        answer = ollama.get("/api/pull")
        assert (answer.status_code, answer.text) == (405, "405 method not allowed")

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("localhost:11434", 200),
            ("mini-64.local", 200),
            ("192.168.1.50:11434", 200),
            ("[::1]:11434", 200),
            ("evil.example.com", 403),
            ("8.8.8.8", 403),
        ],
    )
    def test_loopback_server_answers_only_to_local_names(
        self, ollama: httpx.Client, host: str, status: int
    ) -> None:
        assert ollama.get("/api/version", headers={"Host": host}).status_code == status

    @pytest.mark.parametrize("route", ["pull", "show", "create", "copy", "generate", "chat"])
    def test_missing_body_is_400(self, ollama: httpx.Client, route: str) -> None:
        answer = ollama.post(f"/api/{route}")
        assert (answer.status_code, answer.json()) == (400, {"error": "missing request body"})

    @pytest.mark.parametrize("route", ["pull", "show", "generate"])
    def test_broken_body_is_400(self, ollama: httpx.Client, route: str) -> None:
        answer = ollama.post(f"/api/{route}", content=b"{nonsense")
        assert answer.status_code == 400
        assert list(answer.json()) == ["error"]


class TestEnvironment:
    def test_defaults_are_in_the_config_line(self, server: Server) -> None:
        config = server.config
        assert config["OLLAMA_HOST"] == server.url
        assert config["OLLAMA_MODELS"] == f"{server.folder}/.ollama/models"
        assert config["OLLAMA_KEEP_ALIVE"] == "5m0s"
        assert config["OLLAMA_NUM_PARALLEL"] == "1"
        assert config["OLLAMA_MAX_LOADED_MODELS"] == "0"
        assert config["OLLAMA_CONTEXT_LENGTH"] == "0"
        assert config["OLLAMA_NO_CLOUD"] == "false"
        assert config["OLLAMA_ORIGINS"].startswith("[http://localhost https://localhost ")

    def test_config_line_lists_exactly_these_variables(self, server: Server) -> None:
        assert " ".join(server.config) == (
            "CUDA_VISIBLE_DEVICES GGML_VK_VISIBLE_DEVICES GPU_DEVICE_ORDINAL HIP_VISIBLE_DEVICES "
            "HSA_OVERRIDE_GFX_VERSION HTTPS_PROXY HTTP_PROXY NO_PROXY OLLAMA_CONTEXT_LENGTH "
            "OLLAMA_DEBUG OLLAMA_DEBUG_LOG_REQUESTS OLLAMA_EDITOR OLLAMA_FLASH_ATTENTION "
            "OLLAMA_GPU_OVERHEAD OLLAMA_HOST OLLAMA_KEEP_ALIVE OLLAMA_KV_CACHE_TYPE "
            "OLLAMA_LLM_LIBRARY OLLAMA_LOAD_TIMEOUT OLLAMA_MAX_LOADED_MODELS OLLAMA_MAX_QUEUE "
            "OLLAMA_MAX_TRANSFER_STREAMS OLLAMA_MODELS OLLAMA_MULTIUSER_CACHE OLLAMA_NEW_ENGINE "
            "OLLAMA_NOHISTORY OLLAMA_NOPRUNE OLLAMA_NO_CLOUD OLLAMA_NUM_PARALLEL OLLAMA_ORIGINS "
            "OLLAMA_REMOTES OLLAMA_SCHED_SPREAD OLLAMA_VULKAN ROCR_VISIBLE_DEVICES http_proxy "
            "https_proxy no_proxy"
        )

    def test_config_line_is_a_log_line_of_this_form(self, server: Server) -> None:
        stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)"
        form = rf'^time={stamp} level=INFO source=routes\.go:1802 msg="server config" env="map\['
        assert len(re.findall(form, server.log, re.MULTILINE)) == 1

    def test_start_logs_its_address_and_default_context(self, server: Server) -> None:
        assert f'msg="Listening on {server.url[7:]} (version 0.24.0)"' in server.log
        assert 'msg="inference compute" id=cpu library=cpu ' in server.log
        context = 'msg="vram-based default context" total_vram="0 B" default_num_ctx=4096'
        assert context in server.log

    def test_values_are_normalised(self, start: Start) -> None:
        config = start(
            OLLAMA_KEEP_ALIVE="90m",
            OLLAMA_LOAD_TIMEOUT="0",
            OLLAMA_NUM_PARALLEL=' "2" ',
            OLLAMA_FLASH_ATTENTION="t",
            OLLAMA_DEBUG="2",
            OLLAMA_ORIGINS="https://a.example,https://b.example",
            OLLAMA_REMOTES="a.example,b.example",
            OLLAMA_KV_CACHE_TYPE="'q8_0'",
        ).config
        assert config["OLLAMA_KEEP_ALIVE"] == "1h30m0s"
        assert config["OLLAMA_LOAD_TIMEOUT"] == "2562047h47m16.854775807s"
        assert config["OLLAMA_NUM_PARALLEL"] == "2"
        assert config["OLLAMA_FLASH_ATTENTION"] == "true"
        assert config["OLLAMA_DEBUG"] == "DEBUG-4"
        origins = "[https://a.example https://b.example http://localhost "
        assert config["OLLAMA_ORIGINS"].startswith(origins)
        assert config["OLLAMA_REMOTES"] == "[a.example b.example]"
        assert config["OLLAMA_KV_CACHE_TYPE"] == "q8_0"

    def test_bad_values_are_ignored(self, start: Start) -> None:
        server = start(
            OLLAMA_KEEP_ALIVE="a while",
            OLLAMA_NUM_PARALLEL="many",
            OLLAMA_MAX_QUEUE="-1",
            OLLAMA_NO_CLOUD="no",
            OLLAMA_NOPRUNE="off",
            OLLAMA_KV_CACHE_TYPE="q9_9",
        )
        config = server.config
        assert config["OLLAMA_KEEP_ALIVE"] == "5m0s"
        assert config["OLLAMA_NUM_PARALLEL"] == "1"
        assert config["OLLAMA_MAX_QUEUE"] == "512"
        assert config["OLLAMA_NO_CLOUD"] == "true", "whatever is not false is true"
        assert config["OLLAMA_NOPRUNE"] == "true"
        assert config["OLLAMA_KV_CACHE_TYPE"] == "q9_9"
        warning = 'msg="invalid environment variable, using default" key=OLLAMA_NUM_PARALLEL'
        assert f"{warning} value=many default=1" in server.log

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("-1", "2562047h47m16.854775807s"),
            ("-5m", "2562047h47m16.854775807s"),
            ("0", "0s"),
            ("300", "5m0s"),
            ("1.5h", "1h30m0s"),
            ("250ms", "250ms"),
            ("1h0.5s", "1h0m0.5s"),
            ("5 m", "5m0s"),
            ("1d", "5m0s"),
        ],
    )
    def test_keep_alive_is_parsed(self, start: Start, given: str, shown: str) -> None:
        assert start(OLLAMA_KEEP_ALIVE=given).config["OLLAMA_KEEP_ALIVE"] == shown

    @pytest.mark.parametrize(
        ("form", "shown"),
        [
            ("127.0.0.1:{port}", "http://127.0.0.1:{port}"),
            ("http://127.0.0.1:{port}/", "http://127.0.0.1:{port}"),
            ("http://127.0.0.1:{port}/base", "http://127.0.0.1:{port}/base"),
            (" '127.0.0.1:{port}' ", "http://127.0.0.1:{port}"),
            ("localhost:{port}", "http://localhost:{port}"),
            ("0.0.0.0:{port}", "http://0.0.0.0:{port}"),
            (":{port}", "http://:{port}"),
        ],
    )
    def test_host_is_parsed(self, start: Start, form: str, shown: str) -> None:
        port = str(free_port())
        server = start(answers=False, OLLAMA_HOST=form.format(port=port))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                httpx.get(f"http://127.0.0.1:{port}/api/version", trust_env=False)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        assert server.config["OLLAMA_HOST"] == shown.format(port=port)

    def test_wildcard_address_is_logged_as_both_families(self, start: Start) -> None:
        port = free_port()
        server = start(answers=False, OLLAMA_HOST=f"0.0.0.0:{port}")
        deadline = time.monotonic() + 10
        while "Listening" not in server.log and time.monotonic() < deadline:
            time.sleep(0.05)
        assert f"Listening on [::]:{port} " in server.log

    @pytest.mark.parametrize(
        ("variable", "config", "status"),
        [
            ("", "", {"disabled": False, "source": "none"}),
            ("1", "", {"disabled": True, "source": "env"}),
            ("", '{"disable_ollama_cloud": true}', {"disabled": True, "source": "config"}),
            ("true", '{"disable_ollama_cloud": true}', {"disabled": True, "source": "both"}),
            ("", "broken", {"disabled": False, "source": "none"}),
        ],
    )
    def test_cloud_is_off_by_variable_or_file(
        self,
        start: Start,
        tmp_path: Any,
        variable: str,
        config: str,
        status: dict[str, object],
    ) -> None:
        (tmp_path / ".ollama").mkdir()
        if config:
            (tmp_path / ".ollama/server.json").write_text(config)
        server = start(HOME=str(tmp_path), OLLAMA_NO_CLOUD=variable)
        with server.client() as client:
            assert client.get("/api/status").json() == {"cloud": status}


class TestFailedStart:
    def test_port_in_use_exits_1(self, start: Start, server: Server) -> None:
        second = start(answers=False, OLLAMA_HOST=server.url[7:])
        assert second.process.wait(timeout=10) == 1
        reason = f"Error: listen tcp {server.url[7:]}: bind: address already in use"
        assert reason in second.log

    def test_foreign_address_exits_1(self, start: Start) -> None:
        server = start(answers=False, OLLAMA_HOST="192.0.2.1:11434")
        assert server.process.wait(timeout=10) == 1
        reason = "Error: listen tcp 192.0.2.1:11434: bind: cannot assign requested address"
        assert reason in server.log

    def test_impossible_model_folder_fails_after_the_config_line(self, start: Start) -> None:
        server = start(answers=False, OLLAMA_MODELS="/proc/nothing")
        assert server.process.wait(timeout=10) == 1
        assert 'msg="server config"' in server.log
        reason = "mkdir /proc/nothing: no such file or directory: ensure path elements are"
        assert reason in server.log

    def test_term_exits_0(self, start: Start) -> None:
        server = start()
        server.process.terminate()
        assert server.process.wait(timeout=10) == 0


class TestTags:
    def test_model_is_listed_with_exactly_these_fields(self, ollama: httpx.Client) -> None:
        [model] = ollama.get("/api/tags").json()["models"]
        assert set(model) == {"name", "model", "modified_at", "size", "digest", "details"}
        assert model["name"] == model["model"] == "tiny:latest"
        assert DIGEST.fullmatch(model["digest"])
        assert abs(instant(model["modified_at"]) - datetime.now(UTC)) < timedelta(seconds=20)
        assert model["details"] == {
            "parent_model": "",
            "format": "gguf",
            "family": "llama",
            "families": ["llama"],
            "parameter_size": "40K",
            "quantization_level": "unknown",
        }

    def test_size_counts_every_layer(self, ollama: httpx.Client) -> None:
        [model] = ollama.get("/api/tags").json()["models"]
        weights = len(tiny_model())
        assert weights < model["size"] < weights + 1000, "and a little for the config"

    def test_newest_is_first(self, ollama: httpx.Client) -> None:
        time.sleep(1.1)  # the order has a resolution of one second
        create(ollama, "newer", **{"from": "tiny"})
        assert names(ollama) == ["newer:latest", "tiny:latest"]

    def test_openai_route_lists_the_same(self, ollama: httpx.Client) -> None:
        answer = ollama.get("/v1/models").json()
        assert answer["object"] == "list"
        [model] = answer["data"]
        assert set(model) == {"id", "object", "created", "owned_by"}
        assert (model["id"], model["owned_by"]) == ("tiny:latest", "library")

    def test_openai_route_has_no_list_without_models(self, ollama: httpx.Client) -> None:
        ollama.request("DELETE", "/api/delete", json={"model": "tiny"})
        assert ollama.get("/v1/models").json() == {"object": "list", "data": None}
        assert ollama.get("/api/tags").json() == {"models": []}


class TestNames:
    @pytest.mark.parametrize(
        "spelling",
        ["tiny", "tiny:latest", "library/tiny", "registry.ollama.ai/library/tiny:latest", "TINY"],
    )
    def test_spellings_of_one_model(self, ollama: httpx.Client, spelling: str) -> None:
        assert ollama.post("/api/show", json={"model": spelling}).status_code == 200

    def test_local_suffix_means_the_same_model(self, ollama: httpx.Client) -> None:
        assert ollama.post("/api/show", json={"model": "tiny:local"}).status_code == 200

    @pytest.mark.parametrize(
        ("given", "listed"),
        [
            ("derived", "derived:latest"),
            ("library/derived:8b", "derived:8b"),
            ("ada/derived", "ada/derived:latest"),
            ("example.com/ada/derived:Q4_K_M", "example.com/ada/derived:Q4_K_M"),
        ],
    )
    def test_listing_shows_the_shortest_name(
        self, ollama: httpx.Client, given: str, listed: str
    ) -> None:
        create(ollama, given, **{"from": "tiny"})
        assert listed in names(ollama)

    def test_other_spelling_is_the_same_model(self, ollama: httpx.Client) -> None:
        create(ollama, "Tiny", **{"from": "tiny"})
        assert names(ollama) == ["tiny:latest"]

    @pytest.mark.parametrize("bad", ["", "a b", "-x", "x:", "/x", "x/", "a.b/c", "x" * 81])
    def test_bad_names_are_rejected(self, ollama: httpx.Client, bad: str) -> None:
        answer = ollama.post("/api/pull", json={"model": bad})
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid model name"})


class TestShow:
    def test_answer_has_exactly_these_fields(self, ollama: httpx.Client) -> None:
        shown = ollama.post("/api/show", json={"model": "tiny"}).json()
        shown.pop("tensors", None)
        assert set(shown) == {
            "modelfile",
            "template",
            "details",
            "model_info",
            "capabilities",
            "modified_at",
        }
        assert set(shown["details"]) == DETAILS
        assert shown["capabilities"] == ["completion"]
        assert shown["template"] == "{{ .Prompt }}"

    def test_model_info_is_the_head_of_the_file(self, ollama: httpx.Client) -> None:
        info = ollama.post("/api/show", json={"model": "tiny"}).json()["model_info"]
        assert info["general.architecture"] == "llama"
        assert info["llama.context_length"] == TRAINED_CONTEXT
        assert info["general.parameter_count"] == PARAMETERS
        assert "general.name" not in info
        assert info["tokenizer.ggml.tokens"] is None, "lists only come with verbose"
        assert info["llama.attention.layer_norm_rms_epsilon"] == 1e-5

    def test_name_is_accepted_for_model(self, ollama: httpx.Client) -> None:
        assert ollama.post("/api/show", json={"name": "tiny"}).status_code == 200

    def test_absent_model_is_404(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/show", json={"model": "absent"})
        assert (answer.status_code, answer.json()) == (404, {"error": "model 'absent' not found"})

    def test_no_model_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/show", json={})
        assert (answer.status_code, answer.json()) == (400, {"error": "model is required"})

    def test_bad_name_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/show", json={"model": "a b"})
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid model name"})

    @pytest.mark.parametrize(
        ("template", "capabilities"),
        [
            ("{{ .Prompt }}", {"completion"}),
            ("{{ .Tools }}{{ .Prompt }}", {"completion", "tools"}),
            ("{{ .Prompt }}{{ .Suffix }}", {"completion", "insert"}),
        ],
    )
    def test_template_determines_the_capabilities(
        self, ollama: httpx.Client, template: str, capabilities: set[str]
    ) -> None:
        create(ollama, "templated", template=template, **{"from": "tiny"})
        shown = ollama.post("/api/show", json={"model": "templated"}).json()
        assert set(shown["capabilities"]) == capabilities
        assert shown["template"] == template


class TestCreate:
    def test_derived_model_reports_its_steps(self, ollama: httpx.Client) -> None:
        steps = create(ollama, "tiny-8k", parameters={"num_ctx": 8192}, **{"from": "tiny"})
        statuses = [step["status"] for step in steps]
        assert all(set(step) == {"status"} for step in steps)
        layer = r"(using existing|creating new) layer sha256:[0-9a-f]{64}"
        assert all(re.fullmatch(layer, status) for status in statuses[:-2]), statuses
        assert statuses[-2:] == ["writing manifest", "success"]

    def test_derived_model_has_its_parameters_and_parent(self, ollama: httpx.Client) -> None:
        create(ollama, "tiny-8k", parameters={"num_ctx": 8192}, **{"from": "tiny"})
        shown = ollama.post("/api/show", json={"model": "tiny-8k"}).json()
        assert shown["parameters"] == f"{'num_ctx':<30} 8192"
        assert shown["details"]["parent_model"] == "tiny:latest"
        assert "\nPARAMETER num_ctx 8192\n" in shown["modelfile"]
        assert "\n# FROM tiny-8k:latest\n" in shown["modelfile"]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (4096, "4096"),
            (131072, "131072"),
            (1_000_000, "1e+06"),
            (1_048_576, "1.048576e+06"),
            (0.7, "0.7"),
            (0.00001, "1e-05"),
            ("stop here", '"stop here"'),
            (True, "true"),
        ],
    )
    def test_parameters_are_shown_as_go_prints_them(
        self, ollama: httpx.Client, value: object, shown: str
    ) -> None:
        create(ollama, "odd", parameters={"stop": value}, **{"from": "tiny"})
        answer = ollama.post("/api/show", json={"model": "odd"}).json()
        assert answer["parameters"] == f"{'stop':<30} {shown}"

    def test_list_is_shown_one_value_per_line(self, ollama: httpx.Client) -> None:
        create(ollama, "stopping", parameters={"stop": ["a", "b"]}, **{"from": "tiny"})
        answer = ollama.post("/api/show", json={"model": "stopping"}).json()
        assert answer["parameters"] == f'{"stop":<30} "a"\n{"stop":<30} "b"'

    def test_derived_of_derived_keeps_what_it_does_not_set(self, ollama: httpx.Client) -> None:
        create(ollama, "one", parameters={"num_ctx": 8192, "top_k": 5}, **{"from": "tiny"})
        create(ollama, "two", parameters={"num_ctx": 4096}, **{"from": "one"})
        shown = ollama.post("/api/show", json={"model": "two"}).json()
        assert set(shown["parameters"].splitlines()) == {
            f"{'num_ctx':<30} 4096",
            f"{'top_k':<30} 5",
        }
        assert shown["details"]["parent_model"] == "one:latest"

    def test_system_prompt_is_kept(self, ollama: httpx.Client) -> None:
        create(ollama, "polite", system="Be polite.", **{"from": "tiny"})
        assert ollama.post("/api/show", json={"model": "polite"}).json()["system"] == "Be polite."

    def test_repeated_create_has_the_same_digest(self, ollama: httpx.Client) -> None:
        def digest() -> str:
            create(ollama, "tiny-8k", parameters={"num_ctx": 8192}, **{"from": "tiny"})
            tags = ollama.get("/api/tags").json()["models"]
            return next(str(one["digest"]) for one in tags if one["name"] == "tiny-8k:latest")

        assert digest() == digest()

    def test_without_stream_only_the_last_status_is_sent(self, ollama: httpx.Client) -> None:
        body = {"model": "quiet", "from": "tiny", "stream": False}
        answer = ollama.post("/api/create", json=body)
        assert (answer.status_code, answer.json()) == (200, {"status": "success"})

    def test_missing_source_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/create", json={"model": "empty"})
        error = {"error": "neither 'from' or 'files' was specified"}
        assert (answer.status_code, answer.json()) == (400, error)

    def test_no_file_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/create", json={"model": "empty", "files": {}})
        assert (answer.status_code, answer.json()) == (400, {"error": "unknown type"})

    def test_absent_file_is_an_error_in_the_stream(self, ollama: httpx.Client) -> None:
        steps = create(ollama, "empty", files={"a.gguf": "sha256:" + "0" * 64})
        assert steps[0] == {"status": "parsing GGUF"}
        assert steps[1]["error"].endswith("no such file or directory")

    def test_bad_name_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/create", json={"model": "a b", "from": "tiny"})
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid model name"})

    def test_absent_parent_is_an_error_in_the_stream(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        body = {"model": "orphan", "from": registry.missing_model}
        answer = ollama.post("/api/create", json=body)
        assert answer.status_code == 200
        assert "error" in lines(answer)[1]
        assert names(ollama) == ["tiny:latest"]


class TestBlobs:
    def test_absent_blob_is_404(self, ollama: httpx.Client) -> None:
        assert ollama.head(f"/api/blobs/sha256:{'0' * 64}").status_code == 404

    def test_wrong_digest_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post(f"/api/blobs/sha256:{'0' * 64}", content=b"other")
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("digest mismatch, expected ")

    def test_no_digest_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/blobs/nonsense", content=b"other")
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid digest format"})


class TestDeleteAndCopy:
    def test_deleted_model_is_gone(self, ollama: httpx.Client) -> None:
        answer = ollama.request("DELETE", "/api/delete", json={"model": "tiny"})
        assert (answer.status_code, answer.content) == (200, b"")
        assert names(ollama) == []

    def test_shared_blobs_stay(self, ollama: httpx.Client) -> None:
        create(ollama, "child", **{"from": "tiny"})
        ollama.request("DELETE", "/api/delete", json={"model": "tiny"})
        assert ollama.post("/api/show", json={"model": "child"}).status_code == 200

    def test_absent_model_is_404(self, ollama: httpx.Client) -> None:
        answer = ollama.request("DELETE", "/api/delete", json={"model": "absent"})
        assert (answer.status_code, answer.json()) == (404, {"error": "model 'absent' not found"})

    def test_bad_name_is_400(self, ollama: httpx.Client) -> None:
        answer = ollama.request("DELETE", "/api/delete", json={"model": "a b"})
        assert (answer.status_code, answer.json()) == (400, {"error": 'name "a b" is invalid'})

    def test_copy_is_the_same_model(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/copy", json={"source": "tiny", "destination": "twin"})
        assert (answer.status_code, answer.content) == (200, b"")
        models = ollama.get("/api/tags").json()["models"]
        assert {model["name"] for model in models} == {"tiny:latest", "twin:latest"}
        assert len({model["digest"] for model in models}) == 1

    def test_copy_of_nothing_is_404(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/copy", json={"source": "absent", "destination": "twin"})
        assert (answer.status_code, answer.json()) == (404, {"error": 'model "absent" not found'})


class TestPull:
    def pull(self, ollama: httpx.Client, model: str, **fields: object) -> httpx.Response:
        return ollama.post("/api/pull", json={"model": model, "insecure": True, **fields})

    def test_stream_goes_from_manifest_to_success(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        answer = self.pull(ollama, registry.model)
        assert answer.headers["content-type"] == "application/x-ndjson"
        steps = lines(answer)
        assert steps[0] == {"status": "pulling manifest"}
        assert [step["status"] for step in steps[-3:]] == [
            "verifying sha256 digest",
            "writing manifest",
            "success",
        ]
        for step in steps[1:-3]:
            assert set(step) - {"completed"} == {"status", "digest", "total"}
            assert step["status"] == f"pulling {step['digest'][7:19]}"
            assert step.get("completed", 1) > 0, "a zero is left out"

    def test_pulled_model_is_listed_by_its_full_name(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        self.pull(ollama, registry.model)
        assert registry.model in names(ollama)

    def test_second_pull_downloads_nothing(self, ollama: httpx.Client, registry: Registry) -> None:
        self.pull(ollama, registry.model)
        steps = lines(self.pull(ollama, registry.model))
        layers = [step for step in steps if "digest" in step]
        assert layers
        assert all(step["completed"] == step["total"] for step in layers)
        assert steps[-1] == {"status": "success"}

    def test_absent_model_is_an_error_inside_a_200(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        answer = self.pull(ollama, registry.missing_model)
        assert answer.status_code == 200
        assert lines(answer) == [
            {"status": "pulling manifest"},
            {"error": "pull model manifest: file does not exist"},
        ]

    def test_absent_model_is_500_without_stream(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        answer = self.pull(ollama, registry.missing_model, stream=False)
        error = {"error": "pull model manifest: file does not exist"}
        assert (answer.status_code, answer.json()) == (500, error)

    def test_without_stream_only_success_is_sent(
        self, ollama: httpx.Client, registry: Registry
    ) -> None:
        answer = self.pull(ollama, registry.model, stream=False)
        assert (answer.status_code, answer.json()) == (200, {"status": "success"})


class TestMemory:
    def test_load_is_reported_as_done_reason(self, ollama: httpx.Client) -> None:
        answer = load(ollama)
        assert set(answer) == {"model", "created_at", "response", "done", "done_reason"}
        assert (answer["model"], answer["response"]) == ("tiny", "")
        assert (answer["done"], answer["done_reason"]) == (True, "load")

    def test_chat_loads_too(self, ollama: httpx.Client) -> None:
        answer = ollama.post("/api/chat", json={"model": "tiny"}).json()
        assert set(answer) == {"model", "created_at", "message", "done", "done_reason"}
        assert answer["message"] == {"role": "assistant", "content": ""}
        assert answer["done_reason"] == "load"

    def test_loaded_model_is_in_ps_with_exactly_these_fields(self, ollama: httpx.Client) -> None:
        load(ollama)
        model = only_loaded(ollama)
        assert set(model) == {
            "name",
            "model",
            "size",
            "digest",
            "details",
            "expires_at",
            "size_vram",
            "context_length",
        }
        assert model["name"] == model["model"] == "tiny:latest"
        assert set(model["details"]) == DETAILS
        assert (model["size_vram"], model["context_length"]) == (0, 4096)
        [listed] = ollama.get("/api/tags").json()["models"]
        assert model["digest"] == listed["digest"]

    def test_unload_is_reported_and_empties_ps(self, ollama: httpx.Client) -> None:
        load(ollama)
        assert load(ollama, keep_alive=0)["done_reason"] == "unload"
        deadline = time.monotonic() + 5
        while ollama.get("/api/ps").json()["models"] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ollama.get("/api/ps").json() == {"models": []}

    def test_unload_of_a_model_that_is_not_loaded_succeeds(self, ollama: httpx.Client) -> None:
        assert load(ollama, keep_alive=0)["done_reason"] == "unload"

    @pytest.mark.parametrize(
        ("keep_alive", "seconds"),
        [(None, 300), (600, 600), ("10m", 600), ("1h30m", 5400), (90.5, 90.5)],
    )
    def test_keep_alive_sets_the_expiry(
        self, ollama: httpx.Client, keep_alive: object, seconds: float
    ) -> None:
        load(ollama, "tiny", **({} if keep_alive is None else {"keep_alive": keep_alive}))
        time.sleep(0.1)  # the real server sets the time just after its answer
        left = instant(only_loaded(ollama)["expires_at"]) - datetime.now(UTC)
        assert abs(left.total_seconds() - seconds) < 5

    @pytest.mark.parametrize("keep_alive", [-1, "-1m", -0.5])
    def test_negative_keep_alive_is_forever(self, ollama: httpx.Client, keep_alive: object) -> None:
        load(ollama, keep_alive=keep_alive)
        time.sleep(0.1)
        assert instant(only_loaded(ollama)["expires_at"]).year >= 2300

    @pytest.mark.parametrize(
        ("keep_alive", "error"),
        [
            ("-1", 'time: missing unit in duration "-1"'),
            ("300", 'time: missing unit in duration "300"'),
            ("soon", 'time: invalid duration "soon"'),
            ("1d", 'time: unknown unit "d" in duration "1d"'),
            ("", 'time: invalid duration ""'),
            (True, "Unsupported type: 'bool'"),
        ],
    )
    def test_bad_keep_alive_is_400(
        self, ollama: httpx.Client, keep_alive: object, error: str
    ) -> None:
        answer = ollama.post("/api/generate", json={"model": "tiny", "keep_alive": keep_alive})
        assert (answer.status_code, answer.json()) == (400, {"error": error})

    def test_zero_as_text_unloads(self, ollama: httpx.Client) -> None:
        assert load(ollama, keep_alive="0")["done_reason"] == "unload"

    def test_context_of_the_request_is_used(self, ollama: httpx.Client) -> None:
        load(ollama, options={"num_ctx": 2048})
        assert only_loaded(ollama)["context_length"] == 2048

    def test_context_of_the_model_is_used(self, ollama: httpx.Client) -> None:
        create(ollama, "tiny-1k", parameters={"num_ctx": 1024}, **{"from": "tiny"})
        load(ollama, "tiny-1k")
        loaded = only_loaded(ollama)
        assert (loaded["name"], loaded["context_length"]) == ("tiny-1k:latest", 1024)

    def test_context_is_capped_by_the_trained_length(self, ollama: httpx.Client) -> None:
        load(ollama, options={"num_ctx": TRAINED_CONTEXT * 2})
        assert only_loaded(ollama)["context_length"] == TRAINED_CONTEXT

    def test_another_context_replaces_the_runner(self, ollama: httpx.Client) -> None:
        create(ollama, "tiny-1k", parameters={"num_ctx": 1024}, **{"from": "tiny"})
        load(ollama, "tiny")
        load(ollama, "tiny-1k")
        assert only_loaded(ollama)["name"] == "tiny-1k:latest"

    def test_same_weights_and_context_share_a_runner(self, ollama: httpx.Client) -> None:
        create(ollama, "child", parameters={"top_k": 5}, **{"from": "tiny"})
        load(ollama, "tiny")
        load(ollama, "child")
        assert only_loaded(ollama)["name"] == "tiny:latest"

    def test_environment_sets_the_defaults(self, start: Start, registry: Registry) -> None:
        server = start(library=registry.folder, OLLAMA_CONTEXT_LENGTH="512", OLLAMA_KEEP_ALIVE="-1")
        with server.client() as client:
            client.post("/api/pull", json={"model": registry.model, "insecure": True})
            body = {"model": "plain", "from": registry.model, "parameters": {"num_ctx": 256}}
            client.post("/api/create", json=body)
            load(client, "plain", options={})
            assert only_loaded(client)["context_length"] == 256
            time.sleep(0.1)
            assert instant(only_loaded(client)["expires_at"]).year >= 2300


class TestAnswers:
    def test_generate_streams_until_done(self, ollama: httpx.Client) -> None:
        body = {"model": "tiny", "prompt": "hello", "options": {"num_predict": 3, "seed": 7}}
        answer = ollama.post("/api/generate", json=body)
        assert answer.headers["content-type"] == "application/x-ndjson"
        *parts, last = lines(answer)
        assert parts
        for part in parts:
            assert set(part) == {"model", "created_at", "response", "done"}
            assert part["done"] is False
        assert last["done"] is True
        assert last["done_reason"] in ("stop", "length")
        assert set(last) >= {"total_duration", "load_duration", "eval_count", "eval_duration"}
        assert {"prompt_eval_count", "prompt_eval_duration", "context"} <= set(last)

    def test_generate_without_stream_is_one_document(self, ollama: httpx.Client) -> None:
        body = {"model": "tiny", "prompt": "hello", "stream": False, "options": {"num_predict": 2}}
        answer = ollama.post("/api/generate", json=body).json()
        assert (answer["done"], answer["done_reason"]) == (True, "length")
        assert answer["eval_count"] == 2

    def test_chat_without_stream_is_one_document(self, ollama: httpx.Client) -> None:
        messages = [{"role": "user", "content": "hello"}]
        body = {"model": "tiny", "messages": messages, "stream": False}
        answer = ollama.post("/api/chat", json={**body, "options": {"num_predict": 2}}).json()
        assert answer["message"]["role"] == "assistant"
        assert isinstance(answer["message"]["content"], str)
        assert answer["done_reason"] == "length"

    @pytest.mark.parametrize("route", ["generate", "chat"])
    def test_absent_model_is_404(self, ollama: httpx.Client, route: str) -> None:
        answer = ollama.post(f"/api/{route}", json={"model": "absent"})
        assert (answer.status_code, answer.json()) == (404, {"error": "model 'absent' not found"})

    def test_no_model_differs_by_route(self, ollama: httpx.Client) -> None:
        generate = ollama.post("/api/generate", json={})
        assert (generate.status_code, generate.json()) == (404, {"error": "model '' not found"})
        chat = ollama.post("/api/chat", json={})
        assert (chat.status_code, chat.json()) == (400, {"error": "model is required"})

    def test_thinking_is_refused_if_the_model_cannot(self, ollama: httpx.Client) -> None:
        messages = [{"role": "user", "content": "hello"}]
        body = {"model": "tiny", "messages": messages, "think": True}
        answer = ollama.post("/api/chat", json=body)
        error = {"error": '"tiny" does not support thinking'}
        assert (answer.status_code, answer.json()) == (400, error)

    def test_tools_are_refused_if_the_model_cannot(self, ollama: httpx.Client) -> None:
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        messages = [{"role": "user", "content": "hello"}]
        body = {"model": "tiny", "messages": messages, "tools": [tool]}
        answer = ollama.post("/api/chat", json=body)
        error = {"error": "registry.ollama.ai/library/tiny:latest does not support tools"}
        assert (answer.status_code, answer.json()) == (400, error)

    def test_cloud_model_is_refused_when_the_cloud_is_off(self, start: Start) -> None:
        with start(OLLAMA_NO_CLOUD="1").client() as client:
            answer = client.post("/api/generate", json={"model": "gpt-oss:20b-cloud"})
        error = {"error": "ollama cloud is disabled: remote model is unavailable"}
        assert (answer.status_code, answer.json()) == (403, error)
