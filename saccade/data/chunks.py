"""A stream of examples in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

HEAVY = 64 << 20
"""Bytes after which a chunk ends, however few examples it has."""


def chunks(examples: Iterable[dict[str, Any]], count: int) -> Iterator[list[dict[str, Any]]]:
    """Lists of up to `count` examples."""
    chunk: list[dict[str, Any]] = []
    total = 0
    for example in examples:
        chunk.append(example)
        total += weight(example)
        if len(chunk) >= count or total >= HEAVY:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def weight(value: Any) -> int:
    """Roughly how many bytes a value takes."""
    if isinstance(value, list | tuple):
        nested = bool(value) and not isinstance(value[0], int | float)
        return sum(map(weight, value)) if nested else 8 * len(value)
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(weight, value.values())) if isinstance(value, dict) else 8
