"""Memory that passes from one recording of a model to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from torch import Tensor

LEAST = 128 << 10
"""Bytes of a tensor that is passed on: the C library keeps smaller blocks itself."""
MOST = 32 << 20
"""Bytes that are passed on."""

Spare = deque[Tensor]
"""Large tensors of a trace that was dropped, in order.

A trace keeps memory that the model would otherwise use again. If it were freed at once, the C library would return it
to the system, which would zero it page by page for the next trace: that takes longer than all else that recording does.
So the next recording frees a tensor of the last one for each that it keeps, and what is left at its end.
"""


def large(tensors: Iterable[Tensor]) -> Spare:
    """The tensors to pass on."""
    found: Spare = deque()
    left = MOST
    for tensor in tensors:
        if tensor.nbytes < LEAST or not tensor.is_cpu or tensor.is_nested:
            continue
        size = tensor.untyped_storage().nbytes()
        if size <= left:
            left -= size
            found.append(tensor)
    return found
