"""docs/inventory-reference.md, generated from the schema: `python -m tests.inventory_page`."""

import json
from collections.abc import Iterator
from typing import Any

from fleetctl.inventory import json_schema
from tests.conftest import ROOT

_HEAD = """\
# Every key of the inventory

Generated from the schema (`make docs`). [inventory.md](inventory.md) explains layers and defaults;
[inventory/reference.yaml](../inventory/reference.yaml) shows every key in use, and
`fleetctl schema` prints the schema for your editor.
"""

_LAYERS = ("defaults", "groups")
_PLAIN = {"array": "list", "object": "mapping", "string": "text", "integer": "number"}
_OMITTED = ("null", "number")
"""Nearly every key accepts null, and every text a number."""


def inventory_page() -> str:
    return "\n".join(_lines(json_schema()))


def _lines(schema: dict[str, Any]) -> Iterator[str]:
    yield _HEAD
    for name, section in schema["properties"].items():
        if section.get("deprecated"):
            continue
        yield f"## {name}.NAME" if "additionalProperties" in section else f"## {name}"
        yield f"\n{section['description']}\n"
        described = _object(schema, section)
        if name in _LAYERS:
            keys = ", ".join(f"`{key}`" for key in described["properties"])
            yield f"{keys}, as in [nodes.NAME](#nodesname).\n"
            continue
        yield "| key | value | default | |"
        yield "|---|---|---|---|"
        yield from _rows(schema, described, "")
        yield ""


def _rows(schema: dict[str, Any], section: dict[str, Any], prefix: str) -> Iterator[str]:
    required = section.get("required", ())
    for key, described in section["properties"].items():
        if described.get("deprecated") or "description" not in described:
            continue
        inner = _object(schema, described)
        if inner.get("properties"):
            value = "mapping" + ("" if "none" not in str(described) else ", or `none`")
            yield f"| `{prefix}{key}` | {value} | | {described['description']} |"
            yield from _rows(schema, inner, f"{prefix}{key}.")
            continue
        default = described.get("default")
        shown = f"`{json.dumps(default)}`" if default not in (None, [], {}) else ""
        shown = "required" if key in required else shown
        yield f"| `{prefix}{key}` | {_value(described)} | {shown} | {described['description']} |"


def _object(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The object with properties behind a reference, a choice or a user-chosen name."""
    if "$ref" in node:
        return _object(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        if found := _object(schema, choice):
            return found
    if isinstance(node.get("additionalProperties"), dict):
        return _object(schema, node["additionalProperties"])
    return node if "properties" in node else {}


def _value(node: dict[str, Any]) -> str:
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{choice}`" for choice in node["enum"])
    choices = [_value(choice) for choice in (*node.get("anyOf", ()), *node.get("oneOf", ()))]
    if choices:
        return " or ".join(dict.fromkeys(filter(None, choices)))
    types = node.get("type", "text")
    named = [types] if isinstance(types, str) else types
    return " or ".join(_PLAIN.get(kind, kind) for kind in named if kind not in _OMITTED)


if __name__ == "__main__":
    (ROOT / "docs" / "inventory-reference.md").write_text(inventory_page())
