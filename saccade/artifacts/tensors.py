"""safetensors files: their headers are checked in full before any tensor is read."""

import math
import os
from collections.abc import Mapping
from typing import BinaryIO

import torch
from torch import Tensor

from saccade.artifacts.documents import JsonObject, parse_json
from saccade.artifacts.files import ArtifactError, open_regular

MOST_HEADER = 16 * 2**20
"""Bytes; the header of a model with 100,000 tensors takes about 10 MB."""
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""The shape and the type of each tensor by its name."""


def pack_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a safetensors file."""
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def read_header(path: str | os.PathLike[str]) -> Shapes:
    """The names, shapes and types in a safetensors file, without its tensors.

    Rejects a header that is too large, damaged, or does not describe exactly the bytes that follow it.
    """
    with open_regular(path) as file:
        return _header(file, str(path))


def check_header(path: str | os.PathLike[str], expected: Shapes) -> None:
    """Raises `ArtifactError` unless a file contains exactly these tensors; only the header is read.

    `shapes_of(model)` gives what is expected, also for a model on the meta device: absurd files are rejected before any
    memory is allocated for them.
    """
    compare_shapes(expected, read_header(path), str(path))


def read_tensors(path: str | os.PathLike[str], expected: Shapes | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU; if `expected` is given, only if they are these."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    with open_regular(path) as file:
        found = _header(file, str(path))
        if expected is not None:
            compare_shapes(expected, found, str(path))
        file.seek(0)
        try:
            return load(file.read())  # not mapped: the file may be replaced while they are in use
        except SafetensorError as error:
            raise ArtifactError(f"{path} is damaged: {error}") from None


def compare_shapes(expected: Shapes, found: Shapes, where: str) -> None:
    """Raises `ArtifactError` if names, shapes or types differ, and says which."""
    missing, unknown = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or unknown:
        listed = "; ".join(
            f"{what} {', '.join(name[:80] for name in names[:5])}{f' and {len(names) - 5} more' * (len(names) > 5)}"
            for what, names in (("missing:", missing), ("not in the model:", unknown))
            if names
        )
        raise ArtifactError(f"{where} belongs to another model ({listed}). Build the model with the run's own config.")
    for name, (shape, dtype) in expected.items():
        other_shape, other_dtype = found[name]
        if shape != other_shape:
            raise ArtifactError(
                f"{where} belongs to another model: {name} has the shape {other_shape} there but {shape} in the "
                "model. Build the model with the run's own config."
            )
        if dtype != other_dtype:
            raise ArtifactError(
                f"{where}: {name} is {_name(other_dtype)} there but {_name(dtype)} in the model. Convert the file "
                f"first: read it with saccade.artifacts.read_tensors, call .to({dtype}) on each such tensor, and "
                "write it with pack_tensors."
            )


def _header(file: BinaryIO, where: str) -> Shapes:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        raise ArtifactError(f"{where} is damaged: it is not a safetensors file, or its end is missing.")
    if length > MOST_HEADER:
        raise ArtifactError(f"{where} is damaged: its header has {length:,} bytes, more than {MOST_HEADER:,}.")
    header = JsonObject(parse_json(file.read(length), f"The header of {where}", most_depth=4), where)
    found: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
    spans = []
    for name in header.values:
        if name == "__metadata__":
            continue
        entry = header.inner(name)
        entry.only(("dtype", "shape", "data_offsets"))
        dtype = DTYPES.get(entry.take("dtype", str))
        if dtype is None:
            raise entry.wrong("dtype", f"is {entry.values['dtype'][:20]!r}, which Saccade does not use")
        shape = tuple(entry.take_list("shape", int, least=0, most=2**62))
        begin, end = entry.take_list("data_offsets", int, length=2, least=0, most=size)
        if len(shape) > 16 or math.prod(shape) * dtype.itemsize != end - begin:
            raise entry.wrong("data_offsets", f"does not fit the shape {list(shape[:16])}")
        spans.append((begin, end))
        found[name] = (shape, dtype)
    position = 0
    for begin, end in sorted(spans):
        if begin != position:
            raise ArtifactError(f"{where} is damaged: its tensors overlap or leave a gap at byte {position}.")
        position = end
    if position != size - 8 - length:
        raise ArtifactError(
            f"{where} is damaged: its tensors take {position:,} bytes, but {size - 8 - length:,} follow the header."
        )
    return found


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
