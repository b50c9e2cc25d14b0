"""Marks: numbers that stand for values, equal for equal values, on any machine."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

WIDE = {"i": "<i8", "u": "<u8", "f": "<f8", "b": "|b1"}
"""How numbers in arrays are hashed, so that the width of a machine's integers does not matter."""


def mark(example: Mapping[str, Any], roles: Collection[str]) -> int:
    """A number of 64 bits for an example's values in some roles."""
    found = digest([[role, example[role]] for role in sorted(roles) if role in example])
    return int.from_bytes(found[:8])


def digest(value: Any) -> bytes:
    """A hash of a whole value: numbers, texts, bytes, arrays, and lists and dictionaries of these."""
    found = hashlib.blake2b(digest_size=16)
    _feed(value, found.update)
    return found.digest()


def _feed(value: Any, update: Callable[[bytes], None]) -> None:
    """Hashes a value; each piece starts with its type and length, so that no two values look the same."""
    if isinstance(value, str):
        _piece(b"s", value.encode("utf-8", "surrogatepass"), update)
    elif value is None or isinstance(value, bool):
        _piece(b"c", repr(value).encode(), update)
    elif isinstance(value, int):
        _piece(b"i", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True), update)
    elif isinstance(value, float):
        _piece(b"f", b"nan" if math.isnan(value) else struct.pack(">d", value + 0.0), update)
    elif isinstance(value, bytes | bytearray | memoryview):
        _piece(b"b", bytes(value), update)
    elif isinstance(value, list | tuple):
        update(b"l%d:" % len(value))
        for item in value:
            _feed(item, update)
    elif isinstance(value, Mapping):
        update(b"d%d:" % len(value))
        for key in sorted(value, key=lambda key: (str(type(key)), str(key))):
            _feed(key, update)
            _feed(value[key], update)
    elif isinstance(value, os.PathLike):
        _feed(os.fspath(value), update)
    elif isinstance(value, np.generic):
        _feed(value.item(), update)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        _array(np.asarray(value), update)
    else:  # an object that a user's own reader made: equal on this machine, which is all that can be asked for
        _piece(b"o", pickle.dumps(value, protocol=4), update)


def _array(array: np.ndarray[Any, Any], update: Callable[[bytes], None]) -> None:
    if array.dtype.kind not in WIDE:
        _feed(array.tolist(), update)
        return
    update(b"a%s%s:" % (array.dtype.kind.encode(), repr(array.shape).encode()))
    for row in array.reshape(1, -1) if array.ndim < 2 else array:  # so that a picture is not copied whole
        update(np.ascontiguousarray(row, dtype=WIDE[array.dtype.kind]).tobytes())


def _piece(kind: bytes, data: bytes, update: Callable[[bytes], None]) -> None:
    update(b"%s%d:" % (kind, len(data)))
    update(data)
