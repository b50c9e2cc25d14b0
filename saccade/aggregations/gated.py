"""Gated context."""

import torch
from torch import Tensor, nn

from saccade.aggregations.base import Aggregation, aggregations
from saccade.aggregations.expectation import Expectation
from saccade.distributions import Distribution


@aggregations.register("gated")
class Gated(Aggregation):
    r"""Multiplies the context by a gate computed from the query.

    .. math:: c_i = \beta_i \odot \hat c_i, \qquad \beta_i = \sigma(W q_i + b)

    Here \hat c is the context of any other aggregation. The gate is one number per query, as in the paper, where q_i
    is the decoder state h_{t-1}; with `value_dim` it is one number per feature of the context.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, value_dim), query (*batch, queries, query_dim)
        -> context (*batch, queries, output_dim) of the inner aggregation.

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.2.1.

    Args:
        query_dim: features of the query.
        value_dim: features of the values, for a vector gate; None for a scalar gate.
        aggregation: the aggregation to be gated; the expectation by default.
    """

    def __init__(self, *, query_dim: int, value_dim: int | None = None, aggregation: Aggregation | None = None) -> None:
        super().__init__()
        self.aggregation = Expectation() if aggregation is None else aggregation
        self.feature_wise = self.aggregation.feature_wise
        if self.aggregation.joins_queries:
            raise ValueError(f"{type(self.aggregation).__name__} has no context per query to apply a gate to.")
        self.query_dim = query_dim
        self.gate_proj = nn.Linear(query_dim, 1 if value_dim is None else self.aggregation.output_dim(value_dim))

    def weights(self, selection: Distribution) -> Tensor:
        return self.aggregation.weights(selection)

    def output_dim(self, value_dim: int) -> int:
        return self.aggregation.output_dim(value_dim)

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if query is None or query.shape[-1] != self.query_dim:
            given = "none was given" if query is None else f"its shape is {tuple(query.shape)}"
            raise ValueError(f"Gated needs a query with query_dim={self.query_dim} features, but {given}.")
        context: Tensor = self.aggregation(weights, values, query=query, scores=scores, mask=mask)
        gates: Tensor = self.gate_proj(query)
        if gates.shape[-1] not in (1, context.shape[-1]):
            raise ValueError(
                f"The vector gate has {gates.shape[-1]} features, but the context has {context.shape[-1]}: build Gated "
                f"with value_dim={values.shape[-1]}, or without value_dim for a scalar gate."
            )
        return torch.sigmoid(gates) * context
