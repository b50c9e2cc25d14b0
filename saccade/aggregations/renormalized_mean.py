"""Renormalised mean."""

import torch
from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations


@aggregations.register("renormalized_mean")
class RenormalizedMean(MarginalAggregation):
    r"""The weighted mean of the values, with weights divided by their sum.

    .. math:: c_i = \sum_j \frac{w_{ij}}{\gamma_i} v_j, \qquad \gamma_i = \frac{1}{\lambda} \sum_j w_{ij}

    \lambda is `scale`. A row without weight gives a zero context. If the sum is so small that dividing by it would
    overflow the gradient (below 1e-19 in float32), weights are divided by that bound instead, which keeps the context
    continuous.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Reference:
        Kim et al. (2017), arXiv:1702.00887, where the weights are p(z_i = 1) and \lambda = 2.
    """

    def __init__(self, *, scale: float = 1.0) -> None:
        super().__init__()
        if not scale > 0:
            raise ValueError(f"scale must be above 0, got {scale}.")
        self.scale = scale

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return renormalize(weights, self.scale) @ values


def renormalize(weights: Tensor, mass: float = 1.0) -> Tensor:
    """Scales rows of weights (..., keys) to sum to `mass`; rows of zeros stay zero, with finite gradients."""
    total = weights.sum(-1, keepdim=True, dtype=torch.promote_types(weights.dtype, torch.float32))
    smallest = torch.finfo(total.dtype).tiny ** 0.5
    return (weights * (mass / total.clamp_min(smallest))).to(weights.dtype)
