"""Sums over alternatives: one dynamic programme, three meanings."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Plus = Callable[[Tensor, int], Tensor]
"""Joins the alternatives along an axis; weights are logarithms, so that what goes together is added."""


def log_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The total weight: the result is the log-partition, its gradient the marginals."""
    return torch.logsumexp(alternatives, dim)


def max_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The best alternative, the first of equal ones: the gradient of the result is the best structure."""
    return alternatives.max(dim).values


def sample_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The total weight, with a draw in place of its gradient: the gradient of the result is an exact sample."""
    total: Tensor = _SamplePlus.apply(alternatives, dim)
    return total


class _SamplePlus(torch.autograd.Function):
    """Going back, each sum that is part of the structure draws one of its alternatives."""

    @staticmethod
    def forward(ctx: Any, alternatives: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(alternatives)
        ctx.dim = dim
        return torch.logsumexp(alternatives, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (alternatives,) = ctx.saved_tensors
        # The largest of Gumbel-perturbed logits is a draw from their softmax.
        noise = -torch.empty_like(alternatives).exponential_().log()
        drawn = (alternatives + noise).argmax(ctx.dim, keepdim=True)
        chosen = torch.zeros_like(alternatives).scatter_(ctx.dim, drawn, grads[0].unsqueeze(ctx.dim))
        return chosen, None
