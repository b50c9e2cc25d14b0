"""Sums over alternatives: one dynamic program, three semirings."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from saccade.kernels.modes import transforming
from saccade.kernels.scan import linear_recurrence

Plus = Callable[[Tensor, int], Tensor]
"""Combines the alternatives along an axis; weights are logarithms, so those of joint parts are added."""


def log_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The total weight: the result is the log-partition, its gradient the marginals."""
    return torch.logsumexp(alternatives, dim)


def max_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The best alternative (the first in case of ties): the gradient of the result is the best structure."""
    return alternatives.max(dim).values


def sample_plus(alternatives: Tensor, dim: int) -> Tensor:
    """The total weight, with a sample instead of its gradient: the gradient of the result is an exact sample."""
    total: Tensor = _SamplePlus.apply(alternatives, dim)  # type: ignore[no-untyped-call]
    return total


def cumulative(alternatives: Tensor, plus: Plus) -> Tensor:
    """`plus` over the last axis up to each entry."""
    if plus is log_plus and not transforming():
        return log_cumulative(alternatives)
    size = alternatives.shape[-1]
    allowed = torch.ones(size, size, dtype=torch.bool, device=alternatives.device).tril()
    return plus(torch.where(allowed, alternatives.unsqueeze(-2), -1e30), -1)


def log_cumulative(x: Tensor) -> Tensor:
    """Like torch.logcumsumexp along the last axis, but twice differentiable."""
    if transforming():
        return cumulative(x, log_plus)
    total: Tensor = _LogCumulative.apply(x)  # type: ignore[no-untyped-call]
    return total


class _LogCumulative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = torch.logcumsumexp(x, -1)
        ctx.save_for_backward(x, total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        x, total = ctx.saved_tensors
        if torch.is_grad_enabled():
            total = log_cumulative(x)
        # The gradient from later entries, in units of exp(total): both exponents are zero or less.
        decay = torch.nn.functional.pad((total[..., :-1] - total[..., 1:]).exp(), (0, 1))
        later = linear_recurrence(decay.flip(-1), grads[0].flip(-1)).flip(-1)
        gradient: Tensor = (x - total).exp() * later
        return gradient


class _SamplePlus(torch.autograd.Function):
    """In the backward pass, each sum in the structure samples one of its alternatives."""

    @staticmethod
    def forward(ctx: Any, alternatives: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(alternatives)
        ctx.dim = dim
        return torch.logsumexp(alternatives, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (alternatives,) = ctx.saved_tensors
        # The argmax of Gumbel-perturbed logits is a sample from their softmax.
        noise = -torch.empty_like(alternatives).exponential_().log()
        drawn = (alternatives + noise).argmax(ctx.dim, keepdim=True)
        chosen = torch.zeros_like(alternatives).scatter_(ctx.dim, drawn, grads[0].unsqueeze(ctx.dim))
        return chosen, None
