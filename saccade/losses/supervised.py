"""Supervised attention."""

from typing import Literal, get_args

import torch
from torch import Tensor

from saccade.losses.base import Reduction, reduce, valid_weights
from saccade.masks import Mask

Distance = Literal["cross_entropy", "squared", "log_product"]
Unaligned = Literal["skip", "inherit"]


def supervised_attention_loss(
    weights: Tensor,
    gold: Tensor,
    *,
    distance: Distance = "cross_entropy",
    unaligned: Unaligned = "skip",
    smoothing: float = 0.0,
    step_mask: Tensor | Mask | None = None,
    key_mask: Tensor | Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The distance between the attention and a given alignment.

    .. math:: \text{cross\_entropy: } -\sum_j g_{ij} \log \alpha_{ij}, \quad
        \text{squared: } \sum_j (g_{ij} - \alpha_{ij})^2, \quad
        \text{log\_product: } -\log \sum_j g_{ij} \alpha_{ij}

    g is the gold alignment with rows that sum to one. Where a sparse selection gives a gold position no weight, the
    logarithm of zero is replaced by that of the smallest normal number, without a gradient: with sparse selections,
    prefer "squared".

    Shapes:
        weights (*batch, steps, keys), gold (*batch, steps, keys) bool or of any non-negative numbers, step_mask
        (*batch, steps), key_mask (*batch, keys), True = valid -> the mean or sum over the steps of the batch that are
        valid and aligned, or (*batch, steps), zero elsewhere.

    Reference:
        Mi et al. (2016), arXiv:1608.00112; the three distances also in Liu et al. (2016), arXiv:1609.04186.

    Args:
        distance: one of the three above.
        unaligned: what to do with valid steps without a gold position: ignore them, or use the gold row of the nearest
            aligned step (the earlier one if two are equally near).
        smoothing: the standard deviation, in keys, of a Gaussian that spreads each gold position over its neighbours;
            0 for none.
    """
    for argument, given, choices in (("distance", distance, Distance), ("unaligned", unaligned, Unaligned)):
        if given not in get_args(choices):
            raise ValueError(f"{argument} must be one of {', '.join(get_args(choices))}, got {given!r}.")
    if smoothing < 0:
        raise ValueError(f"smoothing must be 0 or more, got {smoothing}.")
    if gold.shape != weights.shape:
        raise ValueError(f"gold must have the weights' shape {tuple(weights.shape)}, got {tuple(gold.shape)}.")
    weights, steps, keys = valid_weights(weights, step_mask, key_mask)
    gold = torch.where(steps.unsqueeze(-1) & keys.unsqueeze(-2), gold.to(weights.dtype), 0.0)
    if unaligned == "inherit":
        gold = inherit_rows(gold, steps)
    if smoothing > 0:
        gold = smooth_rows(gold, smoothing) * keys.unsqueeze(-2)
    total = gold.sum(-1, keepdim=True)
    gold = gold / torch.where(total > 0, total, 1.0)
    return reduce(_distance(weights, gold, distance), reduction, steps & (total.squeeze(-1) > 0))


def _distance(weights: Tensor, gold: Tensor, distance: Distance) -> Tensor:
    smallest = torch.finfo(weights.dtype).tiny
    if distance == "cross_entropy":
        return -(gold * torch.where(gold > 0, weights, 1.0).clamp_min(smallest).log()).sum(-1)
    if distance == "squared":
        return (gold - weights).square().sum(-1)
    return -(gold * weights).sum(-1).clamp_min(smallest).log()


def inherit_rows(gold: Tensor, steps: Tensor) -> Tensor:
    """Replaces valid rows without mass by the nearest row with mass; gold (*batch, steps, keys)."""
    count = gold.shape[-2]
    if count == 0:
        return gold
    aligned = gold.sum(-1) > 0
    position = torch.arange(count, device=gold.device)
    away = position - position.unsqueeze(-1)
    # Twice the distance, plus one for later rows, so that ties go to the earlier row.
    cost = (2 * away.abs() + (away > 0)).expand(*aligned.shape, count)
    nearest = cost.masked_fill(~aligned.unsqueeze(-2), 4 * count).argmin(-1)
    source = torch.where(steps, nearest, position).unsqueeze(-1)
    return gold.gather(-2, source.expand(gold.shape))


def smooth_rows(gold: Tensor, deviation: float) -> Tensor:
    """Spreads the mass of each row over neighbouring keys by a Gaussian of their distance."""
    position = torch.arange(gold.shape[-1], device=gold.device, dtype=gold.dtype)
    away = position - position.unsqueeze(-1)
    return gold @ torch.exp(-0.5 * (away / deviation).square())
