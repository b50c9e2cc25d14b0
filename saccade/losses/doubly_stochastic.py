"""Doubly stochastic loss."""

from typing import Literal

from torch import Tensor

from saccade.losses.base import Reduction, reduce, valid_weights
from saccade.masks import Mask


def doubly_stochastic_loss(
    weights: Tensor,
    *,
    tau: float | Literal["ratio"] = 1.0,
    step_mask: Tensor | Mask | None = None,
    key_mask: Tensor | Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The squared distance from tau of the attention that each key receives over all steps.

    .. math:: \ell = \sum_i \Big(\tau - \sum_t a_{ti}\Big)^2

    Shapes:
        weights (*batch, steps, keys), step_mask (*batch, steps), key_mask (*batch, keys), True = valid -> the mean or
        sum over the sentences of the batch, or (*batch,).

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.2.1, with tau = 1.

    Args:
        tau: how much every key should receive; "ratio" is the number of valid steps divided by the number of valid keys
            of each sentence, which is attainable even if these differ.
    """
    weights, steps, keys = valid_weights(weights, step_mask, key_mask)
    received = weights.sum(-2)
    if tau == "ratio":
        target = (steps.sum(-1, keepdim=True) / keys.sum(-1, keepdim=True).clamp_min(1)).to(weights.dtype)
    elif isinstance(tau, str):
        raise ValueError(f"tau must be a number or 'ratio', got {tau!r}.")
    else:
        target = received.new_full((), tau)
    return reduce(((target - received).square() * keys).sum(-1), reduction)
