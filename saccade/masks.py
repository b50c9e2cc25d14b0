"""Masks: bool, True = may be attended, broadcastable to (*batch, queries, keys).

A mask is a bool tensor or a predicate of this module; both combine with `&`, `|` and `~`:

    mask = masks.from_lengths(lengths) & masks.causal() & masks.window(64)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


class Mask:
    """A mask that becomes a tensor once the numbers of queries and keys are known."""

    def tensor(self, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
        """The bool tensor, broadcastable to (*batch, queries, keys)."""
        return self.block(queries, keys, slice(0, keys), device)

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        """The columns `part` of that tensor, without computing the others."""
        raise NotImplementedError

    @property
    def depends_on_query(self) -> bool:
        """Whether queries differ in what they may attend."""
        return True

    @property
    def prefix(self) -> Tensor | None:
        """(*batch,): the number of attendable keys, if they are exactly the first ones; otherwise None."""
        return None

    def is_causal(self, queries: int, keys: int) -> bool:
        """Whether query i may attend exactly the keys 0 to i, the case that fused kernels support directly."""
        return False

    def span(self, queries: int, keys: int) -> slice:
        """Consecutive keys beyond which no query may attend any: all of them, unless fewer are known."""
        return slice(0, keys)

    def grow(self, keys: int, by: int) -> Mask:
        """The mask after `by` attendable keys were appended to `keys` keys."""
        return self

    def index(self, rows: Tensor, dims: int) -> Mask:
        """Selects rows of the first batch dimension, where (*batch, queries, keys) has `dims` dimensions."""
        return self

    def across_heads(self, query_dims: int) -> Mask:
        """The same mask for every head, with a heads dimension added before (queries, keys)."""
        return self

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        """(*batch, keys): False for keys that no query may attend; None if no such key is known."""
        return None

    def __and__(self, other: Mask | Tensor) -> Mask:
        return _Combined(torch.logical_and, self, as_mask(other))

    def __or__(self, other: Mask | Tensor) -> Mask:
        return _Combined(torch.logical_or, self, as_mask(other))

    __rand__ = __and__
    __ror__ = __or__

    def __bool__(self) -> bool:
        raise TypeError(
            "a mask is neither true nor false: combine masks with `&`, `|` and `~`, not `and`, `or`, `not`."
        )

    def __invert__(self) -> Mask:
        return _Inverted(self)


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
        return _Given(self.tensor(1, keys)).grow(keys, by)

    def index(self, rows: Tensor, dims: int) -> Mask:
        shared = self.lengths.dim() < dims - 2 or self.lengths.shape[0] == 1
        return self if shared else _Lengths(self.lengths[rows])

    def across_heads(self, query_dims: int) -> Mask:
        return _Lengths(self.lengths.unsqueeze(-1))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        return self.tensor(1, keys, device).squeeze(-2)


@dataclass(frozen=True, eq=False)
class _Given(Mask):
    given: Tensor

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        if self.given.shape[-1] not in (1, keys):
            raise _misfit(self.given, f"(*batch, queries, {keys})")
        given = self.given if self.given.shape[-1] == 1 else self.given[..., part]
        return given if device is None else given.to(device)

    def tensor(self, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
        return self.given if device is None else self.given.to(device)  # not truncated, so that a wrong size is noticed

    @property
    def depends_on_query(self) -> bool:
        return self.given.dim() >= 2 and self.given.shape[-2] != 1

    def grow(self, keys: int, by: int) -> Mask:
        given = self.given.expand(*self.given.shape[:-1], keys) if self.given.shape[-1] == 1 else self.given
        return _Given(torch.cat([given, given.new_ones(*given.shape[:-1], by)], dim=-1))

    def index(self, rows: Tensor, dims: int) -> Mask:
        shared = self.given.dim() < dims or self.given.shape[0] == 1
        return self if shared else _Given(self.given[rows])

    def across_heads(self, query_dims: int) -> Mask:
        if self.given.dim() > query_dims:  # it already has a heads dimension
            return self
        return self if self.given.dim() <= 2 else _Given(self.given.unsqueeze(-3))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        if self.depends_on_query:
            return None
        given = self.tensor(1, keys, device)
        if given.shape[-1] not in (1, keys):
            raise _misfit(given, f"(*batch, queries, {keys})")
        return (given if given.dim() < 2 else given.squeeze(-2)).expand(*given.shape[:-2], keys)


@dataclass(frozen=True, eq=False)
class _Combined(Mask):
    combine: Callable[[Tensor, Tensor], Tensor]
    left: Mask
    right: Mask

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        return self._joined(self.left.block(queries, keys, part, device), self.right.block(queries, keys, part, device))

    def tensor(self, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
        return self._joined(self.left.tensor(queries, keys, device), self.right.tensor(queries, keys, device))

    def _joined(self, left: Tensor, right: Tensor) -> Tensor:
        try:
            return self.combine(left, right)
        except RuntimeError:
            shapes = f"{tuple(left.shape)} and {tuple(right.shape)}"
            raise ValueError(
                f"masks of shapes {shapes} cannot be combined: both must broadcast to (*batch, queries, keys)."
            ) from None

    @property
    def depends_on_query(self) -> bool:
        return self.left.depends_on_query or self.right.depends_on_query

    def span(self, queries: int, keys: int) -> slice:
        left, right = self.left.span(queries, keys), self.right.span(queries, keys)
        if self.combine is not torch.logical_and:
            return slice(min(left.start, right.start), max(left.stop, right.stop))
        start = max(left.start, right.start)
        return slice(start, max(start, min(left.stop, right.stop)))

    def grow(self, keys: int, by: int) -> Mask:
        return _Combined(self.combine, self.left.grow(keys, by), self.right.grow(keys, by))

    def index(self, rows: Tensor, dims: int) -> Mask:
        return _Combined(self.combine, self.left.index(rows, dims), self.right.index(rows, dims))

    def across_heads(self, query_dims: int) -> Mask:
        return _Combined(self.combine, self.left.across_heads(query_dims), self.right.across_heads(query_dims))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        left, right = self.left.over_keys(keys, device), self.right.over_keys(keys, device)
        if left is not None and right is not None:
            return self._joined(left, right)
        if self.combine is torch.logical_and:  # the known half still rules out keys
            return left if right is None else right
        return None


@dataclass(frozen=True, eq=False)
class _Inverted(Mask):
    inner: Mask

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        return ~self.inner.block(queries, keys, part, device)

    @property
    def depends_on_query(self) -> bool:
        return self.inner.depends_on_query

    def grow(self, keys: int, by: int) -> Mask:
        raise ValueError("An inverted mask cannot grow with its memory: pass the mask as a tensor, or without `~`.")

    def index(self, rows: Tensor, dims: int) -> Mask:
        return _Inverted(self.inner.index(rows, dims))

    def across_heads(self, query_dims: int) -> Mask:
        return _Inverted(self.inner.across_heads(query_dims))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        inner = self.inner.over_keys(keys, device)
        return None if inner is None or self.depends_on_query else ~inner


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
        raise TypeError(f"lengths must hold whole numbers, got {lengths.dtype}; use lengths.long().")
    # Only on the CPU and outside compiled code: elsewhere the check would synchronise the device or break the graph.
    if not torch.compiler.is_compiling() and lengths.device.type == "cpu" and bool((lengths < 0).any()):
        raise ValueError(f"lengths must be 0 or more, got {int(lengths.min())}.")
    return _Lengths(lengths)


def as_mask(mask: Tensor | Mask) -> Mask:
    """Returns a predicate unchanged and wraps a bool tensor; anything else is an error that names the fix."""
    if isinstance(mask, Mask):
        return mask
    mask = check_mask(mask)
    return _Given(mask if mask.dim() else mask.unsqueeze(0))


def check_mask(mask: Tensor) -> Tensor:
    """Returns the mask if it is a bool tensor; otherwise raises an error that says how to make it one."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a bool tensor or one of saccade.masks, got {type(mask).__name__}.")
    if mask.dtype != torch.bool:
        fix = (
            "an additive mask of 0 and -inf becomes `mask == 0`, a mask of ones and zeros `mask.bool()`"
            if mask.is_floating_point()
            else "use `mask.bool()` if 1 means may be attended, `mask == 0` if 1 means padding"
        )
        raise TypeError(f"mask must be bool, True = may be attended, got {mask.dtype}: {fix}.")
    return mask


def fitted(mask: Tensor, shape: Sequence[int], what: str) -> Tensor:
    """Expands the mask to `shape`, the shape of `what`."""
    if isinstance(mask, Mask):
        raise TypeError(f"this mask must be a bool tensor for {what} {tuple(shape)}; pass mask.tensor(queries, keys).")
    try:
        return check_mask(mask).expand(shape)
    except RuntimeError:
        raise ValueError(f"mask of shape {tuple(mask.shape)} does not broadcast to {what} {tuple(shape)}.") from None


def resolve(mask: Mask | None, batch: Sequence[int], queries: int, keys: int, device: torch.device) -> Tensor | None:
    """The mask as a tensor with at least two dimensions, checked to broadcast to (*batch, queries, keys)."""
    if mask is None:
        return None
    tensor = mask.tensor(queries, keys, device)
    _check_fit(tensor, (*batch, queries, keys))
    return tensor if tensor.dim() >= 2 else tensor.unsqueeze(0)  # fused kernels need a queries axis


def check(mask: Mask | None, batch: Sequence[int], queries: int, keys: int, device: torch.device) -> None:
    """Rejects a mask that does not broadcast to (*batch, queries, keys), without computing all of it."""
    if mask is not None:
        first = slice(0, min(keys, 1))
        block = mask.block(queries, keys, first, device)
        _check_fit(block, (*batch, queries, first.stop), shown=(*batch, queries, keys))


def _check_fit(tensor: Tensor, wanted: tuple[int, ...], shown: tuple[int, ...] | None = None) -> None:
    ours = (1,) * (len(wanted) - tensor.dim()) + tuple(tensor.shape)
    if len(ours) != len(wanted) or any(have not in (1, want) for have, want in zip(ours, wanted, strict=True)):
        raise _misfit(tensor, str(shown or wanted))


def _misfit(tensor: Tensor, wanted: str) -> ValueError:
    return ValueError(
        f"mask of shape {tuple(tensor.shape)} does not broadcast to (*batch, queries, keys) = {wanted}. "
        "For a mask over keys alone, pass mask[:, None, :] or masks.from_lengths(lengths)."
    )


def _distance(queries: int, keys: int, part: slice, offset: int | None, device: torch.device | str | None) -> Tensor:
    """(queries, part of the keys): the position of the key minus that of the query."""
    offset = keys - queries if offset is None else offset
    query_position = torch.arange(offset, offset + queries, device=device)
    return torch.arange(part.start, part.stop, device=device) - query_position.unsqueeze(-1)
