"""Log-sum-exp pooling."""

import torch
from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations


@aggregations.register("log_sum_exp")
class LogSumExp(MarginalAggregation):
    r"""For each feature, a smooth maximum of the values under the weights.

    .. math:: c_{id} = \frac{1}{r} \log \sum_j w_{ij} \exp(r\, v_{jd})

    r is the `sharpness`. If the weights sum to one, the context goes from the mean (r near 0) to the maximum over the
    weighted keys (large r), or to the minimum for negative r. A row without weight gives zeros.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim) -> context (*batch, queries, value_dim).

    Reference:
        Pinheiro and Collobert (2015), arXiv:1411.6228, with uniform weights.
    """

    def __init__(self, *, sharpness: float = 1.0) -> None:
        super().__init__()
        if sharpness == 0:
            raise ValueError("sharpness must not be 0: its limit is the expectation, so use Expectation().")
        self.sharpness = sharpness

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        precise = torch.promote_types(weights.dtype, torch.float32)
        weighted = (weights > 0).unsqueeze(-1)
        logs = torch.where(weights > 0, weights, 1.0).to(precise).log().unsqueeze(-1)
        terms = logs + self.sharpness * values.to(precise).unsqueeze(-3)
        # The lowest finite number, not -inf: a row of -inf has NaN gradients.
        total = torch.logsumexp(torch.where(weighted, terms, torch.finfo(precise).min), dim=-2)
        return torch.where(weighted.any(-2), total / self.sharpness, 0.0).to(weights.dtype)
