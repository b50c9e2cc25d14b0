"""A few logits of a linear output layer, and the sum of all, without the (rows, vocab) logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK = 1024 * 1024
"""Number of logits held at once."""


class Picked(NamedTuple):
    """What a mixture needs to know of all logits.

    Args:
        total: (*,), log of the sum of their exponentials.
        logits: (*, picks), those that were asked for.
        highest: (*,), the largest; without a gradient.
    """

    total: Tensor
    logits: Tensor
    highest: Tensor


def picked_logits_reference(logits: Float[Tensor, "*b v"], picks: Int[Tensor, "*b k"]) -> Picked:
    """The total, the picked ones and the highest of all logits, in float32 or better."""
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return Picked(exact.logsumexp(-1), exact.gather(-1, picks), exact.detach().amax(-1))


def picked_logits(
    features: Float[Tensor, "n d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"] | None,
    picks: Int[Tensor, "n k"],
) -> Picked:
    """`picked_logits_reference` of features @ weight^T + bias.

    One chunk of logits is held at a time, and computed again for its gradient.
    """
    given = (features, weight) if bias is None else (features, weight, bias)
    plain = torch.is_autocast_enabled(features.device.type) or len({tensor.dtype for tensor in given}) > 1
    if plain or torch.compiler.is_compiling() or features.dtype not in (torch.float32, torch.float64):
        return picked_logits_reference(F.linear(features, weight, bias), picks)
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _PickedLogits.apply
    return Picked(*apply(features, weight, bias, picks))


class _PickedLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, picks: Tensor) -> tuple[Tensor, ...]:
        count = len(features)
        total, highest = features.new_empty(count), features.new_empty(count)
        picked = features.new_empty(picks.shape)
        for part in _chunks(count, len(weight)):
            logits = _linear(features[part], weight, bias)
            picked[part] = logits.gather(1, picks[part])
            highest[part] = top = logits.amax(1)
            total[part] = logits.sub_(top.unsqueeze(1)).exp_().sum(1).log_() + top
        ctx.save_for_backward(features, weight, bias, picks, total)
        ctx.mark_non_differentiable(highest)
        return total, picked, highest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_total: Tensor, of_picked: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias, picks, total = ctx.saved_tensors
        of_features, of_weight = torch.empty_like(features), torch.zeros_like(weight)
        of_bias = None if bias is None else torch.zeros_like(bias)
        for part in _chunks(len(features), len(weight)):
            logits = _linear(features[part], weight, bias)
            grad = logits.sub_(total[part].unsqueeze(1)).exp_().mul_(of_total[part].unsqueeze(1))
            grad.scatter_add_(1, picks[part], of_picked[part])
            torch.mm(grad, weight, out=of_features[part])
            of_weight.addmm_(grad.T, features[part])
            if of_bias is not None:
                of_bias += grad.sum(0)
        return of_features, of_weight, of_bias, None


def _chunks(rows: int, vocab: int) -> list[slice]:
    size = max(1, CHUNK // max(1, vocab))
    return [slice(start, min(rows, start + size)) for start in range(0, rows, size)]


def _linear(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.mm(features, weight.T) if bias is None else torch.addmm(bias, features, weight.T)
