"""Real but tiny models with predefined answers, stored as a registry serves them.

A model has one layer whose weights are all zero, so its prediction depends only on the last token:
one-hot embeddings and an output matrix form a table "after token a comes token b". The template
ends each prompt with a trigger token, which selects the answer."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

from tests.lab.cache import made

WIDTH = 32
CONTEXT = 131072
TEXT, TOOL = "<|lab-text|>", "<|lab-tool|>"

# Ollama takes the tag of a tool call from the text after `if .ToolCalls`. A tool result in the
# conversation means that the call was made: then the sentence follows.
TEMPLATE = """\
{{- $called := false }}
{{- range .Messages }}{{ .Role }}: {{ .Content }}
{{ if .ToolCalls }}<tool_call>{{ range .ToolCalls }}{{ .Function.Name }}{{ end }}{{ end }}
{{- if eq .Role "tool" }}{{ $called = true }}{{ end }}
{{- end }}
{{- if and .Tools (not $called) }}<|lab-tool|>{{ else }}<|lab-text|>{{ end }}"""


@dataclass(frozen=True, slots=True)
class Model:
    """The sentence of a model, and the tool it calls first if the request offers tools."""

    says: str
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False  # repeats the sentence until stopped

    @property
    def tool_call(self) -> str:
        call = json.dumps({"name": self.tool, "arguments": dict(self.arguments)})
        return f"<tool_call>{call}</tool_call>" if self.tool else self.says


MODELS: Mapping[str, Model] = {
    **{
        name: Model(says=f"This is {name} in the lab.")
        for name in ("qwen2.5-coder:7b", "qwen2.5-coder:32b", "qwen3:8b", "qwen3-coder:30b")
    },
    "scripted:latest": Model(
        says="The tool has answered.", tool="read_file", arguments={"path": "README.md"}
    ),
    "endless:latest": Model(says="and so on ", endless=True),
}


def model_store() -> Path:
    """A folder with `manifests/<model>/<tag>` and `blobs/sha256:<digest>`."""
    return made("models", Path(__file__).read_text(), build)


def build(store: Path) -> None:
    (store / "blobs").mkdir()
    for name, model in MODELS.items():
        family, tag = name.split(":")
        manifest = store / "manifests" / family / tag
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(make_manifest(store / "blobs", name, model)))


def make_manifest(blobs: Path, name: str, model: Model) -> dict[str, object]:
    weights = blobs.parent / "weights.gguf"
    write_gguf(weights, name, model)
    config = {
        "model_format": "gguf",
        "model_family": "llama",
        "model_families": ["llama"],
        "model_type": "26K",
        "file_type": "F32",
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    params = {"temperature": 0}
    image = "application/vnd.ollama.image"
    return {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": layer(
            blobs, "application/vnd.docker.container.image.v1+json", json.dumps(config).encode()
        ),
        "layers": [
            layer(blobs, f"{image}.model", weights.read_bytes()),
            layer(blobs, f"{image}.template", TEMPLATE.encode()),
            layer(blobs, f"{image}.params", json.dumps(params).encode()),
        ],
    }


def layer(blobs: Path, media_type: str, content: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    (blobs / digest).write_bytes(content)
    return {"mediaType": media_type, "digest": digest, "size": len(content)}


def write_gguf(path: Path, name: str, model: Model) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = vocabulary(model)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for tensor, values in tensors([token for token, _ in tokens], model):
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vocabulary(model: Model) -> list[tuple[str, gguf.TokenType]]:
    """One token per byte, the triggers, and one token for each answer."""
    answers = dict.fromkeys((as_token(model.says), as_token(model.tool_call)))
    return [
        ("<unk>", gguf.TokenType.UNKNOWN),
        ("<s>", gguf.TokenType.CONTROL),
        ("</s>", gguf.TokenType.CONTROL),
        *((f"<0x{byte:02X}>", gguf.TokenType.BYTE) for byte in range(256)),
        *((trigger, gguf.TokenType.USER_DEFINED) for trigger in (TEXT, TOOL)),
        *((answer, gguf.TokenType.NORMAL) for answer in answers),
    ]


def as_token(text: str) -> str:
    """SentencePiece writes a space as U+2581."""
    return text.replace(" ", "\u2581")


def tensors(tokens: list[str], model: Model) -> Iterator[tuple[str, np.ndarray]]:
    says, call = as_token(model.says), as_token(model.tool_call)
    after = {TEXT: says, TOOL: call, call: "</s>", says: says if model.endless else "</s>"}
    embedding: np.ndarray
    output: np.ndarray
    embedding, output = np.zeros((2, len(tokens), WIDTH), dtype=np.float32)
    for axis, (token, successor) in enumerate(after.items()):
        embedding[tokens.index(token), axis] = 1
        output[tokens.index(successor), axis] = 10
    yield "token_embd.weight", embedding
    yield "output.weight", output
    yield "output_norm.weight", np.ones(WIDTH, dtype=np.float32)
    for norm in ("attn_norm", "ffn_norm"):
        yield f"blk.0.{norm}.weight", np.ones(WIDTH, dtype=np.float32)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        yield f"blk.0.{part}.weight", np.zeros((WIDTH, WIDTH), dtype=np.float32)
