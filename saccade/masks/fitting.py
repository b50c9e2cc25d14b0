"""Whether masks fit what they are used for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.masks.base import Mask, check_mask, misfit


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
        raise misfit(tensor, str(shown or wanted))
