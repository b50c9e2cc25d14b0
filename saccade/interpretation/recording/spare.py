"""Memory that passes from one recording of a model to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from torch import Tensor

LEAST = 128 << 10
"""Bytes of a tensor that is passed on: the C library keeps smaller blocks itself."""
MOST = 32 << 20
"""Bytes that are passed on."""

Spare = deque[list[Tensor]]
"""The large tensors of each call in a trace that was dropped.

A trace keeps memory that the model would otherwise use again. If it were freed at once, the C library would return it
to the system, which would zero it page by page for the next trace: that takes longer than all else that recording does.
So the next recording frees the tensors of a call for each call that it keeps, and what is left at its end.
"""


def large(calls: Iterable[Sequence[Tensor]]) -> Spare:
    """The tensors of calls to pass on."""
    found: Spare = deque()
    left = MOST
    seen: set[int] = set()
    for tensors in calls:
        kept: list[Tensor] = []
        for tensor in tensors:
            plain = type(tensor) is Tensor and tensor.is_cpu and not tensor.is_nested
            if plain and tensor.nbytes >= LEAST and id(tensor) not in seen:
                seen.add(id(tensor))
                kept.append(tensor)
                left -= tensor.untyped_storage().nbytes()
        if left < 0:
            break
        if kept:
            found.append(kept)
    return found
