"""Masks that follow from positions and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.masks.base import Mask, TensorMask


def causal(*, offset: int | None = None) -> Mask:
    """Query i may attend keys up to position i + offset.

    By default the last query is aligned with the last key (offset = keys - queries), so that a single query sees all of
    a growing memory, and equal numbers of queries and keys give the usual lower triangle.
    """
    return _Causal(offset)


def window(left: int, right: int | None = None, *, offset: int | None = None) -> Mask:
    """Allows keys from `left` positions before the query to `right` after it (`right` defaults to `left`)."""
    right = left if right is None else right
    if left < 0 or right < 0:
        raise ValueError(f"masks.window needs sizes of 0 or more, got left={left}, right={right}.")
    return _Window(left, right, offset)


def from_lengths(lengths: Tensor | Sequence[int]) -> Mask:
    """Allows the first `lengths` keys of each batch row; lengths (*batch,) holds whole numbers."""
    lengths = torch.as_tensor(lengths)
    if lengths.dtype == torch.bool or lengths.is_floating_point():
        raise TypeError(f"lengths must contain whole numbers, got {lengths.dtype}; use lengths.long().")
    # Only on the CPU and outside compiled code: elsewhere the check would synchronise the device or break the graph.
    if not torch.compiler.is_compiling() and lengths.device.type == "cpu" and bool((lengths < 0).any()):
        raise ValueError(f"lengths must be 0 or more, got {int(lengths.min())}.")
    return _Lengths(lengths)


@dataclass(frozen=True, eq=False)
class _Causal(Mask):
    offset: int | None

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        return _distance(queries, keys, part, self.offset, device) <= 0

    def is_causal(self, queries: int, keys: int) -> bool:
        return self.offset == 0 or (self.offset is None and queries == keys)


@dataclass(frozen=True, eq=False)
class _Window(Mask):
    left: int
    right: int
    offset: int | None

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        distance = _distance(queries, keys, part, self.offset, device)
        return (distance >= -self.left) & (distance <= self.right)

    def span(self, queries: int, keys: int) -> slice:
        first = keys - queries if self.offset is None else self.offset
        start = min(max(0, first - self.left), keys)
        return slice(start, min(max(start, first + queries + self.right), keys))


@dataclass(frozen=True, eq=False)
class _Lengths(Mask):
    lengths: Tensor

    @property
    def prefix(self) -> Tensor | None:
        return self.lengths

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        lengths = self.lengths.to(device) if device is not None else self.lengths
        return torch.arange(part.start, part.stop, device=lengths.device) < lengths[..., None, None]

    @property
    def depends_on_query(self) -> bool:
        return False

    def grow(self, keys: int, by: int) -> Mask:
        return TensorMask(self.tensor(1, keys)).grow(keys, by)

    def index(self, rows: Tensor, dims: int) -> Mask:
        shared = self.lengths.dim() < dims - 2 or self.lengths.shape[0] == 1
        return self if shared else _Lengths(self.lengths[rows])

    def across_heads(self, query_dims: int) -> Mask:
        return _Lengths(self.lengths.unsqueeze(-1))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        return self.tensor(1, keys, device).squeeze(-2)


def _distance(queries: int, keys: int, part: slice, offset: int | None, device: torch.device | str | None) -> Tensor:
    """(queries, part of the keys): the position of the key minus that of the query."""
    offset = keys - queries if offset is None else offset
    query_position = torch.arange(offset, offset + queries, device=device)
    return torch.arange(part.start, part.stop, device=device) - query_position.unsqueeze(-1)
