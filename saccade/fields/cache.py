"""Tensors that are expensive to compute, kept in memory."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor

from saccade.data.marks import digest


class TensorCache:
    """The most recently used tensors, by key, up to a number of bytes; several threads may use it."""

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0
        self._kept: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Tensor | None:
        """The tensor, if it is there."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, tensor: Tensor) -> None:
        """Adds a tensor, evicting the least recently used ones."""
        size = tensor.nbytes
        with self._lock:
            if key in self._kept or size > self.most:
                return
            self._kept[key] = tensor
            self.bytes += size
            while self.bytes > self.most:
                self.bytes -= self._kept.popitem(last=False)[1].nbytes

    def __reduce__(self) -> tuple[type[TensorCache], tuple[int]]:
        """A copy, such as another process gets, starts empty."""
        return TensorCache, (self.most,)


def content_key(source: str | bytes) -> Hashable:
    """A key that differs for different contents; None for a missing file."""
    if isinstance(source, bytes):
        return digest(source)
    try:
        stat = os.stat(source)
    except (OSError, ValueError):
        return None  # decoding says what is wrong with it
    return source, stat.st_mtime_ns, stat.st_size
