"""What an inventory file may contain: one class per section with types and rules; its JSON Schema.

The descriptions of the keys are the comments of inventory/reference.yaml. A key set to `null` is
not managed by fleetctl, even where an outer layer sets it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from fleetctl.inventory import reference
from fleetctl.model import address, variables
from fleetctl.model.facts import Mode
from fleetctl.model.fleet import CONTROLLER

K = TypeVar("K")
V = TypeVar("V")


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text, re.ASCII):
        raise ValueError(
            "is not a name; use up to 63 letters, digits, '.', '_' and '-', a letter or digit first"
        )
    return text


def _node_name(text: str) -> str:
    if text.lower() == CONTROLLER:
        raise ValueError("is reserved for the machine that fleetctl runs on; choose another name")
    return _name(text)


def _agent_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", text, re.ASCII):
        raise ValueError(
            "is not an agent name; use up to 63 of a-z, 0-9, '-' and '_', a letter or digit first"
        )
    return text


def _variable_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", text, re.ASCII):
        raise ValueError("is not the name of an environment variable")
    return text


def _ssh_word(text: str) -> str:
    if not re.fullmatch(r"(?!-)[!-~]{1,253}", text, re.ASCII):
        raise ValueError("must be one printable word that does not start with '-'")
    return text


def _ssh_host(text: str) -> str:
    if "@" in text or "/" in text:
        raise ValueError("must be only the host; `user` and `port` have keys of their own")
    return address.valid_host(text)


def _no_ssh(text: str) -> str:
    if text != "none":
        raise ValueError(f"is {text!r}; it must be a mapping such as {{host: {text}}}, or none")
    return text


def _plain(text: str) -> str:
    """Text for people: may contain line breaks and tabs, but no escape codes."""
    if not text.replace("\n", "").replace("\t", "").isprintable():
        raise ValueError("contains a character that cannot be printed")
    return text


def _whole_number(value: object) -> object:
    """Accept a number in quotes, and no boolean."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
        return int(value)
    return value


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _null_to_list(value: object) -> object:
    return [] if value is None else value


def _null_to_mapping(value: object) -> object:
    return {} if value is None else value


Text = Annotated[str, Field(coerce_numbers_to_str=True), AfterValidator(_plain)]
Number = Annotated[int, Field(strict=True), BeforeValidator(_whole_number)]
Size = Annotated[Number, Field(ge=1, lt=2**31)]
Port = Annotated[Number, Field(ge=1, le=65535)]
Name = Annotated[str, Field(coerce_numbers_to_str=True), AfterValidator(_name)]
Word = Annotated[Text, AfterValidator(_ssh_word)]
Reference = Annotated[str, Field(coerce_numbers_to_str=True)]
List = Annotated[list[V], BeforeValidator(_null_to_list)]
OneOrMany = Annotated[
    List[Reference],
    BeforeValidator(_one_or_many),
    WithJsonSchema({"type": ["array", "string", "null"], "items": {"type": ["string", "number"]}}),
]
Table = Annotated[dict[K, V], BeforeValidator(_null_to_mapping)]
Endpoint = Annotated[str, AfterValidator(address.endpoint)]
WithoutEffect = Annotated[Any, Field(json_schema_extra={"deprecated": True})]
"""A key of subagent-fleet that it never read, or that fleetctl does in another way."""


class Section(BaseModel):
    # Building the validators of the whole inventory at once is much faster than one by one.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    _empty = model_validator(mode="before")(_null_to_mapping)


class SshSection(Section):
    host: Annotated[Text, AfterValidator(_ssh_host)] | None = None
    user: Word | None = None
    port: Port | None = None
    identity_file: Annotated[Text, Field(min_length=1)] | None = None
    jump: Word | None = None


def _normalised(kind: variables.Kind) -> Any:
    def read(value: object) -> str | None:
        return None if value is None else kind.read(value)

    return Annotated[str | None, BeforeValidator(read), WithJsonSchema(_or_null(kind))]


def _or_null(kind: variables.Kind) -> dict[str, Any]:
    return {"anyOf": [dict(kind.json_schema), {"type": "null"}]}


_FREE: dict[str, Any] = {name: (_normalised(kind), None) for name, kind in variables.FREE.items()}
EnvSection = create_model("EnvSection", __base__=Section, **_FREE)
_ENV_SCHEMA = {
    "type": ["object", "null"],
    "properties": {name: _or_null(kind) for name, kind in variables.FREE.items()},
    "additionalProperties": False,
}
"""Without a description per variable; the one of `env` is enough."""


class _OllamaBase(Section):
    service: Literal["auto", Mode] = "auto"
    takeover: StrictBool = False
    env: Annotated[EnvSection, WithJsonSchema(_ENV_SCHEMA)] = Field(default_factory=EnvSection)


_TYPED: dict[str, Any] = {
    key: (_normalised(kind), None) for key, (_, kind) in variables.TYPED.items()
}
OllamaSection = create_model("OllamaSection", __base__=_OllamaBase, **_TYPED)
"""With every variable that has a key of its own; values are normalised to environment text."""

Ssh = Annotated[
    Annotated[SshSection, Tag("settings")]
    | Annotated[Literal["none"], BeforeValidator(_no_ssh), Tag("none")],
    Discriminator(lambda value: "none" if isinstance(value, str) else "settings"),
]


class PowerSection(Section):
    sleep: Literal["never"] | None = None


class Layer(Section):
    """The keys that `defaults`, groups and nodes share."""

    ssh: Ssh = SshSection.model_construct()
    ollama: OllamaSection = Field(default_factory=OllamaSection)
    exposure: Literal["acknowledged"] | None = None
    prune: StrictBool | None = None
    power: PowerSection = PowerSection.model_construct()


class NodeSection(Layer):
    endpoint: Endpoint | None = None
    provider: Annotated[Text, Field(min_length=1)] = "ollama"
    groups: List[Reference] = []
    tags: List[Name] = []
    cloud_provider: Text | None = None
    wake_on_lan: WithoutEffect = None


class ModelSection(Section):
    node: Reference | None = None
    nodes: List[Reference] = []
    ollama_model: Annotated[Text, Field(min_length=1)]
    litellm_alias: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    context: Size | None = None
    timeout: Size = 300
    max_parallel: Size = 1
    fallback: OneOrMany = []
    thinking: StrictBool = False
    context_pool: WithoutEffect = None


class AgentSection(Section):
    model: Reference
    description: Text
    tools: list[Text] | None = None
    prompt: Text | None = None
    workspace: WithoutEffect = None
    require_approval: WithoutEffect = None
    memory_namespace: WithoutEffect = None
    shared_pool_id: WithoutEffect = None
    state_driver: WithoutEffect = None
    self_mutating: WithoutEffect = None


class GatewaySection(Section):
    provider: Literal["litellm"] = "litellm"
    host: Annotated[Text, AfterValidator(address.valid_host)] = "127.0.0.1"
    port: Port = 4000
    master_key_env: Annotated[str, AfterValidator(_variable_name)] = "LITELLM_MASTER_KEY"


class ProjectSection(Section):
    name: Text = "fleet"
    gateway: GatewaySection | None = None
    security: WithoutEffect = None
    observability: WithoutEffect = None
    blackboard_enabled: WithoutEffect = None
    dynamic_routing: WithoutEffect = None
    gpu_microscheduling: WithoutEffect = None


class InventorySection(Section):
    """The whole file."""

    project: ProjectSection = ProjectSection.model_construct()
    gateway: GatewaySection | None = None
    defaults: Layer = Layer.model_construct()
    groups: Table[Name, Layer] = {}
    nodes: Table[Annotated[str, AfterValidator(_node_name)], NodeSection]
    models: Table[Name, ModelSection] = {}
    agents: Table[Annotated[str, AfterValidator(_agent_name)], AgentSection] = {}
    mcp_servers: WithoutEffect = None


_NAMED = ("groups", "nodes", "models", "agents")
"""Sections whose keys are names chosen by the user; every name has the same keys below it."""

_LAYERS = ("defaults", "groups", "nodes")
"""Sections that share keys, so that one of them describes a key for all."""


class _Generator(GenerateJsonSchema):
    """Accepts what the sections accept: null for anything empty, and numbers as text."""

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
    """For editors, with the comments of the reference inventory as descriptions."""
    schema = InventorySection.model_json_schema(schema_generator=_Generator)
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "fleetctl"}
    for (section, *rest), comment in reference.descriptions().items():
        steps = rest[1:] if section in _NAMED else rest
        for place in _LAYERS if steps and section in _LAYERS else (section,):
            described = _property(schema, (place, *steps))
            if described is not None:
                described.setdefault("description", comment)
    return schema


def _property(schema: dict[str, Any], path: Sequence[str]) -> dict[str, Any] | None:
    """The property at a path, if there is one."""
    here: dict[str, Any] | None = schema
    for step in path:
        here = next((found["properties"].get(step) for found in _objects(schema, here or {})), None)
    return here


def _objects(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects with properties behind references, choices and user-chosen names."""
    if "properties" in node:
        yield node
    if "$ref" in node:
        yield from _objects(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _objects(schema, choice)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _objects(schema, node["additionalProperties"])
