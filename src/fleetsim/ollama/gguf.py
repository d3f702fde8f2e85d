"""Reads and writes the metadata at the head of a GGUF file. Tensors are not read."""

import struct
from typing import BinaryIO

Value = bool | int | float | str | list["Value"] | None

_FLOAT, _STRING, _ARRAY = 6, 8, 9
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
FILE_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 7: "Q8_0", 15: "Q4_K_M", 17: "Q5_K_M", 18: "Q6_K"}


class NotGGUF(ValueError):
    """The file does not start like a GGUF file."""


def read_metadata(file: BinaryIO) -> dict[str, Value]:
    if file.read(4) != b"GGUF":
        raise NotGGUF("supplied file was not in GGUF format")
    (_version,) = _unpack(file, "I")
    tensors, count = _unpack(file, "QQ")
    metadata: dict[str, Value] = {}
    for _ in range(count):
        key = _string(file)
        (kind,) = _unpack(file, "I")
        metadata[key] = _value(file, kind)
    metadata["general.parameter_count"] = sum(_tensor_elements(file) for _ in range(tensors))
    return metadata


def write_metadata(metadata: dict[str, int | str]) -> bytes:
    """A GGUF file without tensors: enough to be pulled, listed and shown."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, 0, len(metadata))]
    for key, value in metadata.items():
        parts.append(_packed(key))
        if isinstance(value, str):
            parts += [struct.pack("<I", _STRING), _packed(value)]
        else:
            parts.append(struct.pack("<II", 4, value))
    return b"".join(parts)


def _tensor_elements(file: BinaryIO) -> int:
    _string(file)
    (dimensions,) = _unpack(file, "I")
    elements = 1
    for size in _unpack(file, "Q" * dimensions):
        elements *= size
    _unpack(file, "IQ")
    return elements


def _value(file: BinaryIO, kind: int) -> Value:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, length = _unpack(file, "IQ")
        return [_value(file, inner) for _ in range(length)]
    if kind not in _NUMBERS:
        raise NotGGUF(f"invalid type: {kind}")
    number = _unpack(file, _NUMBERS[kind])[0]
    return _shortest(number) if kind == _FLOAT else number


def _shortest(number: float) -> float:
    """The shortest decimal with the same 32-bit value, so that 1e-5 reads as 1e-5."""
    candidates = (float(f"{number:.{digits}g}") for digits in range(6, 10))
    return next(one for one in candidates if struct.pack("<f", one) == struct.pack("<f", number))


def _string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    return file.read(length).decode("utf-8", "replace")


def _packed(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    data = file.read(struct.calcsize("<" + form))
    try:
        return struct.unpack("<" + form, data)
    except struct.error:
        raise NotGGUF("unexpected EOF") from None
