"""The reference inventory, the schema and the docs agree."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetctl.inventory import InvalidFile, document, json_schema, parse
from fleetctl.inventory.schema import InventorySection
from fleetctl.model import variables
from tests.conftest import ROOT, FleetctlIn

SCHEMA = json_schema()


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    for title, section in [("inventory", SCHEMA), *SCHEMA["$defs"].items()]:
        for name, described in section["properties"].items():
            if not described.get("deprecated"):
                yield f"{title}.{name}", described


@pytest.mark.parametrize(("name", "described"), list(properties()), ids=lambda x: str(x)[:40])
def test_every_key_is_explained_in_the_reference(name: str, described: dict[str, Any]) -> None:
    if name in ("NodeSection.cloud_provider", "ProjectSection.gateway"):
        return  # only for files of subagent-fleet
    assert len(described["description"]) > 8


def test_the_reference_uses_every_key() -> None:
    used: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            used.update(map(str, value))
            for inner in value.values():
                collect(inner)

    collect(yaml.safe_load((ROOT / "inventory" / "reference.yaml").read_text()))
    known = {name.partition(".")[2] for name, _ in properties()}
    assert known - used == {"cloud_provider"}


def test_every_typed_variable_is_a_key_of_the_schema() -> None:
    keys = set(SCHEMA["$defs"]["OllamaSection"]["properties"])
    assert keys == {*variables.TYPED, "service", "takeover", "env"}


_TYPES: dict[str, Any] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": int,
    "string": str,
    "array": list,
    "object": dict,
}


def refused(value: Any, schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """What an editor would mark as wrong, by the keywords that our schema uses."""
    if "$ref" in schema:
        yield from refused(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if choices and all(any(refused(value, choice)) for choice in choices):
        yield f"{at}: {value!r} is none of the choices"
    types = schema.get("type", [])
    named = [types] if isinstance(types, str) else types
    if named and not any(
        isinstance(value, _TYPES[each]) and isinstance(value, bool) <= (each == "boolean")
        for each in named
    ):
        yield f"{at}: {value!r} is not {named}"
    if value not in schema.get("enum", [schema.get("const", value)]):
        yield f"{at}: {value!r}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r}"
    if isinstance(value, list):
        for inner in value:
            yield from refused(inner, schema.get("items", {}), at)
    if isinstance(value, dict):
        others = schema.get("additionalProperties", {})
        for key, inner in value.items():
            known = schema.get("properties", {}).get(key, others)
            if known is False:
                yield f"{at}.{key} is not a key"
            else:
                yield from refused(inner, known or {}, f"{at}.{key}")
        yield from (
            f"{at}.{key} is missing" for key in schema.get("required", ()) if key not in value
        )


LOADABLE = """
project:
defaults:
groups: {g: , h: {ssh: , ollama: , power: }}
nodes:
  a:
  b: {ssh: {host: null, user: 7, port: ~}, tags: , groups: , exposure: null, prune: null}
  c: {ollama: {keep_alive: null, env: }, tags: [22, x]}
  d: {ollama: {host: null, debug: null, kv_cache_type: null, env: {NO_PROXY: null}}}
  e: {ollama: {env: {OLLAMA_NOPRUNE: true, OLLAMA_VULKAN: "0", OLLAMA_GPU_OVERHEAD: 1}}}
models:
  m: {node: a, ollama_model: q, fallback: n, context: null, litellm_alias: null}
  n: {nodes: [a, b], ollama_model: 7, fallback: , node: }
agents: {x: {model: m, description: 7, tools: , prompt: null}}
"""


def loadable() -> Iterator[Any]:
    yield pytest.param(LOADABLE.encode(), id="nothing in every place")
    for file in sorted((ROOT / "tests" / "cases").glob("*/*.yaml")):
        if file.parent.name != "plan":
            with suppress(InvalidFile):
                parse(file.read_bytes(), file)
                yield pytest.param(file.read_bytes(), id=file.stem)


@pytest.mark.parametrize("data", list(loadable()))
def test_the_schema_takes_what_loads(data: bytes) -> None:
    parse(data, Path("fleet.yaml"))
    assert list(refused(document.parse(data).value, SCHEMA)) == []


def test_the_schema_refuses_what_is_wrong() -> None:
    wrong = {"nodes": {"a": {"shs": 1, "ollama": {"debug": "no", "kv_cache_type": "q5"}}}}
    assert len(list(refused(wrong, SCHEMA))) == 3
    assert list(refused({}, SCHEMA)) == [".nodes is missing"]


def test_the_schema_that_is_printed_is_the_schema_that_is_used(fleetctl: FleetctlIn) -> None:
    printed = fleetctl("schema").exits(0).json
    assert printed == SCHEMA
    assert set(printed["properties"]) == set(InventorySection.model_fields)
