"""How an inventory is resolved: layers, defaults, origins, selection, files of subagent-fleet."""

import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl import inventory
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import load, select, ssh_config
from fleetctl.model.fleet import Fleet, Node
from tests.conftest import CASES, ROOT


def fleet_of(text: str, tmp_path: Path) -> Fleet:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return load(file)[0]


def node_of(text: str, tmp_path: Path) -> Node:
    return next(iter(fleet_of(text, tmp_path).nodes.values()))


LAYERS = """
defaults:
  ssh: {user: ada, port: 2222}
  ollama: {keep_alive: 1h, max_queue: 10, env: {NO_PROXY: a}}
groups:
  first: {ollama: {keep_alive: 2h, kv_cache_type: q8_0}}
  second: {ollama: {keep_alive: 3h, env: {NO_PROXY: b}}, prune: true}
nodes:
  n: {ssh: {host: h, user: bob}, groups: [first, second], ollama: {max_queue: 20}}
"""


def test_a_node_wins_over_its_groups_and_the_last_group_over_the_first(tmp_path: Path) -> None:
    node = node_of(LAYERS, tmp_path)
    assert node.ssh
    assert (node.ssh.user, node.ssh.port, node.prune) == ("bob", 2222, True)
    assert node.environment == {
        "NO_PROXY": "b",
        "OLLAMA_HOST": "0.0.0.0:11434",
        "OLLAMA_KEEP_ALIVE": "3h0m0s",
        "OLLAMA_KV_CACHE_TYPE": "q8_0",
        "OLLAMA_MAX_QUEUE": "20",
        "OLLAMA_NO_CLOUD": "1",
    }


def test_every_value_has_its_origin(tmp_path: Path) -> None:
    origins = node_of(LAYERS, tmp_path).origins
    assert origins["ssh.user"] == "node"
    assert origins["ssh.port"] == "defaults"
    assert origins["ollama.keep_alive"] == "group second"
    assert origins["ollama.kv_cache_type"] == "group first"
    assert origins["ollama.env.NO_PROXY"] == "group second"
    assert origins["ollama.no_cloud"] == "built-in"
    assert origins["ollama.host"].startswith("derived")
    assert origins["endpoint"].startswith("derived")


def test_the_smallest_inventory_gets_every_default(tmp_path: Path) -> None:
    node = node_of("nodes: {mini: }", tmp_path)
    assert node.ssh
    assert (node.ssh.host, node.endpoint) == ("mini", "http://mini:11434")
    assert node.environment == {
        "OLLAMA_HOST": "0.0.0.0:11434",
        "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_NO_CLOUD": "1",
    }


def test_the_needs_of_the_models_are_derived(tmp_path: Path) -> None:
    text = """
    nodes: {n: {}}
    models:
      a: {node: n, ollama_model: qwen3, context: 8192, max_parallel: 3}
      b: {node: n, ollama_model: "Qwen3:latest", context: 8192}
      c: {node: n, ollama_model: "library/qwen3", context: 32768}
      d: {node: n, ollama_model: "llama3.2:3b"}
    """
    environment = node_of(text, tmp_path).environment
    assert environment["OLLAMA_NUM_PARALLEL"] == "3"
    assert environment["OLLAMA_CONTEXT_LENGTH"] == "32768"
    # a and b are one model; c is the same with another context, which is loaded beside it
    assert environment["OLLAMA_MAX_LOADED_MODELS"] == "3"


def test_without_a_context_the_context_stays_unmanaged(tmp_path: Path) -> None:
    text = 'nodes: {n: {}}\nmodels: {a: {node: n, ollama_model: "m"}}'
    environment = node_of(text, tmp_path).environment
    assert "OLLAMA_CONTEXT_LENGTH" not in environment
    assert environment["OLLAMA_MAX_LOADED_MODELS"] == "1"


def test_null_makes_a_value_unmanaged_whatever_the_outer_layers_set(tmp_path: Path) -> None:
    text = """
    defaults: {ollama: {debug: true, env: {NO_PROXY: x}}}
    nodes: {n: {ollama: {keep_alive: null, debug: ~, host: null, env: {NO_PROXY: null}}}}
    """
    node = node_of(text, tmp_path)
    assert node.environment == {"OLLAMA_NO_CLOUD": "1"}
    assert node.endpoint == "http://n:11434"


def test_an_empty_section_sets_nothing(tmp_path: Path) -> None:
    text = """
    defaults: {ssh: {user: ada}}
    groups: {macs: {power: {sleep: never}, ollama: {keep_alive: 1h, env: {NO_PROXY: x}}}}
    nodes: {n: {groups: [macs], power: {}, ssh: {}, ollama: {env: }}}
    """
    node = node_of(text, tmp_path)
    assert node.ssh
    assert (node.ssh.user, node.sleep) == ("ada", "never")
    assert node.environment["OLLAMA_KEEP_ALIVE"] == "1h0m0s"
    assert node.environment["NO_PROXY"] == "x"


@pytest.mark.parametrize(
    ("ssh", "is_watched"), [("{}", True), ("", True), ("none", True), ("{user: ada}", False)]
)
def test_an_empty_ssh_keeps_the_ssh_none_of_the_group(
    ssh: str, is_watched: bool, tmp_path: Path
) -> None:
    node = f'{{groups: [seen], endpoint: "http://n:11434", ssh: {ssh}}}'
    found = node_of(f"groups: {{seen: {{ssh: none}}}}\nnodes: {{n: {node}}}", tmp_path)
    assert (found.ssh is None) == is_watched


def test_an_ssh_host_of_null_gets_the_default(tmp_path: Path) -> None:
    text = """
    defaults: {ssh: {host: other}}
    nodes:
      mini: {ssh: {host: null}}
      big: {ssh: {host: }, endpoint: "http://10.0.0.7:11434"}
    """
    hosts = [node.ssh and node.ssh.host for node in fleet_of(text, tmp_path).nodes.values()]
    assert hosts == ["mini", "10.0.0.7"]


@pytest.mark.parametrize(
    ("node", "host", "endpoint"),
    [
        ("{ssh: {host: localhost}}", "127.0.0.1:11434", "http://127.0.0.1:11434"),
        ('{endpoint: "http://localhost:11500"}', "127.0.0.1:11500", "http://localhost:11500"),
        ("{ssh: {host: h}, ollama: {host: 0.0.0.0:9}}", "0.0.0.0:9", "http://h:9"),
        ('{ssh: {host: h}, ollama: {host: "[::]"}}', "[::]:11434", "http://h:11434"),
        ('{ssh: {host: "fd00::1"}}', "0.0.0.0:11434", "http://[fd00::1]:11434"),
        ('{endpoint: "http://mini:7/"}', "0.0.0.0:7", "http://mini:7"),
        ('{endpoint: "https://mini.example"}', "0.0.0.0:11434", "https://mini.example"),
        ("{ssh: {host: 127.0.0.1, port: 22}}", "0.0.0.0:11434", "http://127.0.0.1:11434"),
        ('{endpoint: "http://[::1]:11434"}', "[::1]:11434", "http://[::1]:11434"),
        ('{ssh: {host: "::1"}}', "[::1]:11434", "http://[::1]:11434"),
        (
            "{ssh: {host: localhost}, ollama: {host: 10.0.0.5}}",
            "10.0.0.5:11434",
            "http://10.0.0.5:11434",
        ),
        ('{ssh: {host: "fe80::1%eth0"}}', "0.0.0.0:11434", "http://[fe80::1%25eth0]:11434"),
    ],
)
def test_host_and_endpoint_are_derived_from_each_other(
    node: str, host: str, endpoint: str, tmp_path: Path
) -> None:
    found = node_of(f"nodes: {{n: {node}}}", tmp_path)
    assert (found.environment["OLLAMA_HOST"], found.endpoint) == (host, endpoint)


def test_the_zone_of_an_address_is_written_otherwise_in_a_url(tmp_path: Path) -> None:
    node = node_of('nodes: {n: {endpoint: "http://[fe80::1%25eth0]:11434"}}', tmp_path)
    assert node.ssh
    assert node.ssh.host == "fe80::1%eth0"


def test_text_stays_as_it_was_written(tmp_path: Path) -> None:
    text = """
    project: {name: NO}
    nodes: {1.10: {ssh: {host: h, user: 1e3}, tags: [017, yes, 22]}}
    models: {a: {node: 1.10, ollama_model: "m:1.10", litellm_alias: 22:22}}
    """
    fleet = fleet_of(text, tmp_path)
    node = fleet.nodes["1.10"]
    assert node.ssh
    assert (fleet.name, node.ssh.user, node.tags) == ("NO", "1e3", ("017", "yes", "22"))
    assert fleet.models["a"].litellm_alias == "22:22"


def test_anchors_can_be_used(tmp_path: Path) -> None:
    text = "nodes: {a: {ollama: &o {keep_alive: 2h}}, b: {ollama: *o}}"
    environments = [node.environment for node in fleet_of(text, tmp_path).nodes.values()]
    assert environments[0] == environments[1]
    assert environments[0]["OLLAMA_KEEP_ALIVE"] == "2h0m0s"


def test_an_agent_without_a_prompt_gets_one_for_its_role(tmp_path: Path) -> None:
    text = """
    nodes: {n: {}}
    models: {m: {node: n, ollama_model: m}}
    agents:
      planner: {model: m, description: Plans.}
      tester: {model: m, description: Writes tests.}
      own: {model: m, description: Own., prompt: Do it.}
    """
    prompts = {name: agent.prompt for name, agent in fleet_of(text, tmp_path).agents.items()}
    assert prompts["planner"].startswith("You plan")
    assert prompts["tester"] == "You are the tester of this project. Writes tests."
    assert prompts["own"] == "Do it."


def test_an_alias_of_ssh_config_without_endpoint_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Include more\nHost *\n  User x\n")
    (tmp_path / ".ssh" / "more").write_text("Host big other\n\tHostName=10.0.0.1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "fleet.yaml"
    file.write_text('nodes: {big: {}, small: {}, c: {ssh: {host: other}, endpoint: "http://x:1"}}')
    assert [warning.path for warning in load(file)[1]] == ["nodes.big"]


@pytest.mark.parametrize(
    "include",
    ["~nosuchuser/x", "/", "config config config", "**x", "more more", "/dev/zero", "[", "a\0b"],
)
def test_an_unusable_include_of_ssh_config_is_skipped(
    include: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(f"Include {include}\nHost big\n  HostName 10.0.0.1\n")
    (tmp_path / ".ssh" / "more").write_text("Include config more\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ssh_config.aliases() == {"big"}


def test_a_user_without_a_home_has_no_ssh_config(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_user(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", no_such_user)
    assert ssh_config.aliases() == set()


SELECTABLE = """
groups: {minis: {}, gpu: {}, studios: {}}
nodes:
  mac-1: {groups: [minis], tags: [heavy]}
  mac-2: {groups: [minis]}
  mini: {groups: [minis]}
  box: {groups: [gpu], tags: [heavy]}
"""


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        (None, "mac-1 mac-2 mini box"),
        ("mac*", "mac-1 mac-2"),
        ("mac*,box", "mac-1 mac-2 box"),
        ("@minis,!mini", "mac-1 mac-2"),
        ("!@minis", "box"),
        ("tag:heavy", "mac-1 box"),
        ("tag:heavy,!box", "mac-1"),
        (" box , mini ", "mini box"),
        ("mac-[12]", "mac-1 mac-2"),
        ("@m*", "mac-1 mac-2 mini"),
        ("controller,box", "box"),
    ],
)
def test_limit_selects(limit: str | None, names: str, tmp_path: Path) -> None:
    chosen = select(fleet_of(SELECTABLE, tmp_path), limit)
    assert " ".join(node.name for node in chosen) == names


@pytest.mark.parametrize(
    ("limit", "hint"),
    [
        ("mac-3", "did you mean mac-1 or mac-2?"),
        ("@mini", "did you mean minis?"),
        ("@studio", "did you mean studios?"),
        ("@x", "known: gpu, minis, studios"),
        ("@studios", "a node joins a group with its key `groups`"),
        ("tag:heavyy", "did you mean heavy?"),
        ("box,!nothing", "known: box, mac-1, mac-2, mini"),
        ("", "a pattern is"),
        ("box,!box", "a pattern is"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(limit: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError) as caught:
        select(fleet_of(SELECTABLE, tmp_path), limit)
    assert hint in (caught.value.hint or "")


def test_an_empty_group_is_not_reported_as_unknown(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="--limit: '@stud\\*' contains no nodes") as caught:
        select(fleet_of(SELECTABLE, tmp_path), "@stud*")
    assert caught.value.exit_code == Exit.USAGE


SHAPES = sorted((CASES / "subagent-fleet").glob("*.yaml"))


@pytest.mark.parametrize("file", SHAPES, ids=lambda file: file.stem)
def test_a_file_of_subagent_fleet_loads_unchanged(file: Path) -> None:
    fleet, _ = load(file)
    for node in fleet.nodes.values():
        if node.provider == "ollama":
            assert node.ssh
            assert "OLLAMA_HOST" in node.environment
    assert all(agent.prompt for agent in fleet.agents.values())


def test_fields_of_subagent_fleet_without_effect_give_a_warning() -> None:
    _, warnings = load(CASES / "subagent-fleet" / "every-field.yaml")
    named = {warning.path for warning in warnings if "no effect" in warning.what}
    project = ("security", "observability", "blackboard_enabled", "dynamic_routing")
    agent = ("workspace", "require_approval", "memory_namespace", "shared_pool_id", "state_driver")
    assert named == {
        *(f"project.{key}" for key in (*project, "gpu_microscheduling")),
        *(f"agents.code_reviewer.{key}" for key in (*agent, "self_mutating")),
        "nodes.box.wake_on_lan",
        "models.light.context_pool",
        "mcp_servers",
    }


@pytest.mark.parametrize("file", sorted((ROOT / "inventory").glob("*.yaml")), ids=lambda f: f.stem)
def test_the_shipped_inventories_have_no_warnings(file: Path) -> None:
    fleet, warnings = load(file)
    assert not warnings
    assert fleet.agents


def test_every_public_name_of_the_package_exists() -> None:
    assert sorted(inventory.__all__) == sorted(sum(inventory._MODULES.values(), ()))
    for name in inventory.__all__:
        assert hasattr(inventory, name)
    with pytest.raises(AttributeError, match="no attribute 'usual'"):
        inventory.usual  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["docs"], ["docs", "nodse"], ["--version"]])
def test_commands_that_load_no_inventory_do_not_import_pydantic(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "fleetctl", *arguments]
    imported = subprocess.run(command, capture_output=True, text=True).stderr
    assert "fleetctl.cli" in imported
    assert "pydantic" not in imported
