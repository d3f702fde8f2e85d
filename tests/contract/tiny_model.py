"""A model file of 180 kB that the real server can load: llama, one layer, all weights zero.

Its answers are random words, which is sufficient. Written with `struct` alone, without
dependencies."""

import math
import struct
from collections.abc import Sequence

TRAINED_CONTEXT = 8192
_WIDTH = 32
_ALIGNMENT = 32
_U32, _F32, _STRING, _ARRAY, _I32 = 4, 6, 8, 9, 5

_TOKENS = [
    *("<unk>", "<s>", "</s>"),
    *(f"<0x{byte:02X}>" for byte in range(256)),
    *(f"word{number}" for number in range(256)),
]
_TOKEN_TYPES = [2, 3, 3, *[6] * 256, *[1] * 256]
_SQUARE = (_WIDTH, _WIDTH)
_TENSORS: dict[str, Sequence[int]] = {
    "token_embd.weight": (_WIDTH, len(_TOKENS)),
    "blk.0.attn_norm.weight": (_WIDTH,),
    "blk.0.attn_q.weight": _SQUARE,
    "blk.0.attn_k.weight": _SQUARE,
    "blk.0.attn_v.weight": _SQUARE,
    "blk.0.attn_output.weight": _SQUARE,
    "blk.0.ffn_norm.weight": (_WIDTH,),
    "blk.0.ffn_gate.weight": _SQUARE,
    "blk.0.ffn_up.weight": _SQUARE,
    "blk.0.ffn_down.weight": _SQUARE,
    "output_norm.weight": (_WIDTH,),
    "output.weight": (_WIDTH, len(_TOKENS)),
}

PARAMETERS = sum(math.prod(shape) for shape in _TENSORS.values())


def tiny_model() -> bytes:
    metadata = [
        _text("general.architecture", "llama"),
        _text("general.name", "tiny"),
        _number("llama.context_length", TRAINED_CONTEXT),
        _number("llama.embedding_length", _WIDTH),
        _number("llama.block_count", 1),
        _number("llama.feed_forward_length", _WIDTH),
        _number("llama.attention.head_count", 1),
        _number("llama.attention.head_count_kv", 1),
        _number("llama.rope.dimension_count", _WIDTH),
        _string("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", _F32, 1e-5),
        _text("tokenizer.ggml.model", "llama"),
        _array("tokenizer.ggml.tokens", _STRING, [_string(token) for token in _TOKENS]),
        _array("tokenizer.ggml.scores", _F32, [struct.pack("<f", 0.0)] * len(_TOKENS)),
        _array("tokenizer.ggml.token_type", _I32, [struct.pack("<i", t) for t in _TOKEN_TYPES]),
        _number("tokenizer.ggml.unknown_token_id", 0),
        _number("tokenizer.ggml.bos_token_id", 1),
        _number("tokenizer.ggml.eos_token_id", 2),
    ]
    infos, size = [], 0
    for name, shape in _TENSORS.items():
        infos.append(_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
        infos.append(struct.pack("<IQ", 0, size))
        size += 4 * math.prod(shape)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(_TENSORS), len(metadata))
    head += b"".join(metadata) + b"".join(infos)
    return head + bytes(-len(head) % _ALIGNMENT) + bytes(size)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _text(name: str, value: str) -> bytes:
    return _string(name) + struct.pack("<I", _STRING) + _string(value)


def _number(name: str, value: int) -> bytes:
    return _string(name) + struct.pack("<II", _U32, value)


def _array(name: str, kind: int, items: Sequence[bytes]) -> bytes:
    return _string(name) + struct.pack("<IIQ", _ARRAY, kind, len(items)) + b"".join(items)
