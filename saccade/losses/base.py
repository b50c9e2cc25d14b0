"""Common parts of the attention losses: valid steps, valid keys, and reduction over the batch."""

from typing import Literal

import torch
from torch import Tensor

from saccade.masks import Mask, check_mask

Reduction = Literal["mean", "sum", "none"]
"""How per-item losses are reduced: the mean over the valid items of the batch, their sum, or not at all."""


def reduce(losses: Tensor, reduction: Reduction, valid: Tensor | None = None) -> Tensor:
    """Reduces the losses of the valid items; the mean is zero if there are none."""
    if valid is not None:
        losses = torch.where(valid, losses, 0.0)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        count = losses.numel() if valid is None else valid.sum()
        return losses.sum() / (max(count, 1) if isinstance(count, int) else count.clamp_min(1))
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}.")


def valid_weights(
    weights: Tensor, step_mask: Tensor | Mask | None, key_mask: Tensor | Mask | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The weights in at least float32, zero at invalid steps and keys, and both masks expanded.

    Args:
        weights: (*batch, steps, keys).
        step_mask: bool, broadcastable to (*batch, steps).
        key_mask: bool, broadcastable to (*batch, keys).
    """
    if weights.dim() < 2:
        raise ValueError(f"weights must be (*batch, steps, keys), got {tuple(weights.shape)}.")
    steps = full(step_mask, weights.shape[:-1], "step_mask", "(*batch, steps)", weights.device)
    keys = full(key_mask, (*weights.shape[:-2], weights.shape[-1]), "key_mask", "(*batch, keys)", weights.device)
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    return torch.where(steps.unsqueeze(-1) & keys.unsqueeze(-2), weights, 0.0), steps, keys


def full(
    mask: Tensor | Mask | None, shape: torch.Size | tuple[int, ...], name: str, axes: str, device: torch.device
) -> Tensor:
    """The bool mask expanded to `shape`; None makes everything valid."""
    if isinstance(mask, Mask):
        mask = mask.over_keys(shape[-1], device)
    if mask is None:
        return torch.ones((), dtype=torch.bool, device=device).expand(shape)
    try:
        return check_mask(mask).expand(shape)
    except RuntimeError:
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not broadcast to {axes} = {tuple(shape)}. Weights with a heads "
            f"axis need {name}.unsqueeze(-2)."
        ) from None
