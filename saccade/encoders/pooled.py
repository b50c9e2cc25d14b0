"""An encoder whose states become one vector."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.encoders.base import Encoder, mean_of_real
from saccade.layers.choices import make_score, make_selection
from saccade.reading import Reading
from saccade.registry import nearest
from saccade.scores import Score
from saccade.selections import Selection

PoolingName = Literal["attention", "average", "max"]
POOLINGS = ("attention", "average", "max")


class PooledEncoder(nn.Module):
    r"""An encoder whose states are pooled into one vector: by attention with learned queries, their mean or maximum.

    .. math:: v = [c_1; ...; c_M], \quad c_m = \mathrm{attention}(u_m, h)

    .. math:: \text{or}\quad v = \frac{1}{T} \sum_t h_t \quad\text{or}\quad v_d = \max_t h_{td}

    The score `query_free`, the word attention of Yang et al. (2016), has its query in its weights and needs no other;
    several queries make the self-attentive pooling of Lin et al. (2017). A row without real positions gives zeros.

    Shapes:
        source (batch, length) or (batch, length, features), mask bool (batch, length), padding last
        -> (batch, output_dim).

    Reference:
        Yang et al. (2016), "Hierarchical attention networks", section 2.2; Lin et al. (2017), arXiv:1703.03130.

    Args:
        encoder: any.
        pooling: "attention", "average" or "max".
        score, selection: of the attention, each a short name or an instance.
        hidden_dim: features of the score's hidden layer, if it has one.
        num_queries: M, how many things are looked for.
        max_length: the most positions, for scores that must know.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        pooling: PoolingName = "attention",
        score: str | Score | partial[Score] = "query_free",
        selection: str | Selection | partial[Selection] = "softmax",
        hidden_dim: int = 100,
        num_queries: int = 1,
        max_length: int = 2048,
    ) -> None:
        super().__init__()
        check_count("num_queries", num_queries)
        if pooling not in POOLINGS:
            raise ValueError(f"Unknown pooling {pooling!r}.{nearest(pooling, POOLINGS)}")
        self.encoder = encoder
        self.kind = pooling
        self.pooling: Attention | None = None
        self.queries: nn.Parameter | None = None
        self.output_dim = dim = encoder.output_dim
        if pooling != "attention":
            if num_queries > 1:
                raise ValueError(f"pooling={pooling!r} has no queries: leave out num_queries={num_queries}.")
            return
        sizes = {"query_dim": dim, "key_dim": dim, "dim": dim, "hidden_dim": hidden_dim, "max_keys": max_length}
        self.pooling = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        self.output_dim = num_queries * self.pooling.aggregation.output_dim(dim)
        if not self.pooling.score.query_free:
            self.queries = nn.Parameter(torch.empty(num_queries, dim))
            nn.init.normal_(self.queries, std=dim**-0.5)
        elif num_queries > 1:
            raise ValueError(
                f"{type(self.pooling.score).__name__} has a single query, among its weights: num_queries={num_queries} "
                "needs another score, such as additive."
            )

    def forward(self, source: Tensor, mask: Tensor) -> Tensor:
        return self.read(source, mask)[0]

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Reading | None]:
        """The vector, and the reading that it comes from, if there is attention."""
        states, mask, *_ = self.encoder(source, mask)
        if self.pooling is None:
            return (mean_of_real if self.kind == "average" else max_of_real)(states, mask), None
        queries = None if self.queries is None else self.queries.expand(states.shape[0], -1, -1)
        reading: Reading = self.pooling(queries, states, mask=mask.unsqueeze(1))
        return reading.context.flatten(1), reading


def max_of_real(states: Tensor, mask: Tensor) -> Tensor:
    """The largest real value of each feature of the states (batch, length, dim), zero for rows without any."""
    real = mask.unsqueeze(-1)
    largest = F.pad(states.masked_fill(~real, -torch.inf), (0, 0, 0, 1), value=-torch.inf).amax(1)  # even of none
    return torch.where(real.any(1), largest, 0.0)
