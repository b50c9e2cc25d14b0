"""Top-k mean."""

import torch
from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations
from saccade.aggregations.renormalized_mean import renormalize
from saccade.checks import check_count
from saccade.kernels.top_k import among_largest


@aggregations.register("top_k_mean")
class TopKMean(MarginalAggregation):
    r"""The mean of the values at the k largest weights.

    .. math:: c_i = \frac{\sum_{j \in K_i} w_{ij} v_j}{\sum_{j \in K_i} w_{ij}}, \qquad K_i = \text{top}_k(w_i)

    Without `weighted` it is the plain mean over K_i, and the weights get no gradient. Keys with weight zero are never
    included: a row with fewer than k weighted keys is the mean of those, and zero if there are none.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Args:
        k: how many keys to read; ties go to the earlier key.
        weighted: whether the mean is weighted.
    """

    def __init__(self, *, k: int = 8, weighted: bool = True) -> None:
        super().__init__()
        check_count("k", k)
        self.k = k
        self.weighted = weighted

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        kept = weights if self.weighted else (weights > 0).to(weights.dtype)
        return renormalize(torch.where(among_largest(weights, self.k), kept, 0.0)) @ values
