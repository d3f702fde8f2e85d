"""The reference inventory, the schema and the docs say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from fleetctl.inventory.json_schema import json_schema
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


def test_the_schema_that_is_printed_is_the_schema_that_is_used(fleetctl: FleetctlIn) -> None:
    printed = fleetctl("schema").exits(0).json
    assert printed == SCHEMA
    assert set(printed["properties"]) == set(InventorySection.model_fields)
