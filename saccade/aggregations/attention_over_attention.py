"""Attention over attention."""

import torch
from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations


@aggregations.register("attention_over_attention")
class AttentionOverAttention(MarginalAggregation):
    r"""Weights the queries by how much the keys attend to them, and reads one context for all queries.

    .. math:: \beta_i = \frac{1}{n} \sum_j \frac{\exp s_{ij}}{\sum_l \exp s_{lj}}, \qquad
        c = \sum_j \Big( \sum_i \beta_i w_{ij} \Big) v_j

    In the paper the keys are the words of the document and the queries those of the question, w is \alpha(t), and n
    is the number of keys. Masked pairs are ignored, and keys that no query may attend do not count in n. All queries
    are needed at once, so stateful scores are not supported.

    Shapes:
        weights and scores (*batch, queries, keys), values (*batch, keys, value_dim), mask broadcastable to the
        scores -> context (*batch, 1, value_dim).

    Reference:
        Cui et al. (2017), arXiv:1607.04423.
    """

    joins_queries: bool = True

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if scores is None:
            raise ValueError("AttentionOverAttention needs the scores: aggregation(weights, values, scores=scores).")
        allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
        lowest = torch.finfo(scores.dtype).min
        columns = torch.softmax(scores.masked_fill(~allowed, lowest), dim=-2).masked_fill(~allowed, 0.0)
        attended = allowed.any(-2).sum(-1, keepdim=True).clamp_min(1)
        importance = columns.sum(-1) / attended
        return importance.unsqueeze(-2) @ weights @ values
