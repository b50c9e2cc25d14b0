"""Max pooling."""

import torch
from torch import Tensor

from saccade.aggregations.base import Aggregation, aggregations


@aggregations.register("max_pool")
class MaxPool(Aggregation):
    r"""For each feature, the largest weighted value among the attendable keys.

    .. math:: c_{id} = \max_j w_{ij} v_{jd}

    The gradient goes to the maximum. A row with no attendable keys gives zeros.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim), mask broadcastable to the weights
        -> context (*batch, queries, value_dim).
    """

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if weights.shape[-1] == 0:
            return weights @ values
        # Only the maxima enter the graph, so that (queries, keys, value_dim) is not kept for the backward pass.
        with torch.no_grad():
            weighted = weights.unsqueeze(-1) * values.unsqueeze(-3)
            if mask is not None:
                weighted = weighted.masked_fill(~mask.expand(weights.shape).unsqueeze(-1), -torch.inf)
            winner = weighted.argmax(-2)
        largest = weights.gather(-1, winner) * values.gather(-2, winner)
        if mask is None:
            return largest
        return torch.where(mask.expand(weights.shape).any(-1, keepdim=True), largest, 0.0)
