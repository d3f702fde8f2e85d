"""The JSON Schema of an inventory, for editors, with the words of the reference inventory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from fleetctl.inventory import reference
from fleetctl.inventory.schema import InventorySection

_NAMED = ("groups", "nodes", "models", "agents")
"""Sections whose keys are names; what stands below them is the same for each name."""

_LAYERS = ("defaults", "groups", "nodes")
"""Sections that share keys, so that a key needs to be explained in one of them only."""


class _AsRead(GenerateJsonSchema):
    """Takes what the sections take: nothing for something empty, and numbers where text stands."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return super().model_schema(schema) | {"type": ["object", "null"]}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        return super().dict_schema(schema) | {"type": ["object", "null"]}

    def list_schema(self, schema: core_schema.ListSchema) -> JsonSchemaValue:
        return super().list_schema(schema) | {"type": ["array", "null"]}

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        coerced = {"type": ["string", "number"]} if schema.get("coerce_numbers_to_str") else {}
        return super().str_schema(schema) | coerced


def json_schema() -> dict[str, Any]:
    schema = InventorySection.model_json_schema(schema_generator=_AsRead)
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "fleetctl"}
    for (section, *rest), words in reference.explanations().items():
        steps = rest[1:] if section in _NAMED else rest
        for place in _LAYERS if steps and section in _LAYERS else (section,):
            described = _property(schema, (place, *steps))
            if described is not None:
                described.setdefault("description", words)
    return schema


def _property(schema: dict[str, Any], path: Sequence[str]) -> dict[str, Any] | None:
    """The property at a path, if there is one."""
    here: dict[str, Any] | None = schema
    for step in path:
        here = next((each["properties"].get(step) for each in _objects(schema, here or {})), None)
    return here


def _objects(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects with properties that a node of the schema stands for."""
    if "properties" in node:
        yield node
    if "$ref" in node:
        yield from _objects(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    for each in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _objects(schema, each)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _objects(schema, node["additionalProperties"])
