"""What a mask is, and how masks combine."""

from __future__ import annotations

from collections.abc import Callable
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
class TensorMask(Mask):
    """A bool tensor, broadcastable to (*batch, queries, keys)."""

    given: Tensor

    def block(self, queries: int, keys: int, part: slice, device: torch.device | str | None = None) -> Tensor:
        if self.given.shape[-1] not in (1, keys):
            raise misfit(self.given, f"(*batch, queries, {keys})")
        given = self.given if self.given.shape[-1] == 1 else self.given[..., part]
        return given if device is None else given.to(device)

    def tensor(self, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
        return self.given if device is None else self.given.to(device)  # not truncated, so that a wrong size is noticed

    @property
    def depends_on_query(self) -> bool:
        return self.given.dim() >= 2 and self.given.shape[-2] != 1

    def grow(self, keys: int, by: int) -> Mask:
        given = self.given.expand(*self.given.shape[:-1], keys) if self.given.shape[-1] == 1 else self.given
        return TensorMask(torch.cat([given, given.new_ones(*given.shape[:-1], by)], dim=-1))

    def index(self, rows: Tensor, dims: int) -> Mask:
        shared = self.given.dim() < dims or self.given.shape[0] == 1
        return self if shared else TensorMask(self.given[rows])

    def across_heads(self, query_dims: int) -> Mask:
        if self.given.dim() > query_dims:  # it already has a heads dimension
            return self
        return self if self.given.dim() <= 2 else TensorMask(self.given.unsqueeze(-3))

    def over_keys(self, keys: int, device: torch.device | str | None = None) -> Tensor | None:
        if self.depends_on_query:
            return None
        given = self.tensor(1, keys, device)
        if given.shape[-1] not in (1, keys):
            raise misfit(given, f"(*batch, queries, {keys})")
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


def as_mask(mask: Tensor | Mask) -> Mask:
    """Returns a predicate unchanged and wraps a bool tensor; anything else is an error that names the fix."""
    if isinstance(mask, Mask):
        return mask
    mask = check_mask(mask)
    return TensorMask(mask if mask.dim() else mask.unsqueeze(0))


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


def misfit(tensor: Tensor, wanted: str) -> ValueError:
    """The error for a mask that does not broadcast to the shape `wanted`."""
    return ValueError(
        f"mask of shape {tuple(tensor.shape)} does not broadcast to (*batch, queries, keys) = {wanted}. "
        "For a mask over keys alone, pass mask[:, None, :] or masks.from_lengths(lengths)."
    )
