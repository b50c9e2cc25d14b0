"""Co-attention: two sequences are each read according to what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.layers.choices import make_score
from saccade.reading import Reading
from saccade.scores import Score
from saccade.scores.base import Prepared
from saccade.selections import Selection


class GivenScore(Score):
    r"""The keys are the scores themselves: one number each, computed elsewhere.

    .. math:: s_j = k_j

    Shapes:
        query ignored, keys (*batch, keys, 1) -> scores (*batch, queries, keys), the same for every query.
    """

    query_free: bool = True

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        scores: Tensor = prepared.transpose(-1, -2)
        return scores.expand(*scores.shape[:-2], query.shape[-2], scores.shape[-1])


class Both(NamedTuple):
    """What is read on both sides."""

    user: Reading
    item: Reading


class CoAttention(nn.Module):
    r"""Compares all positions of two sequences; each position then has the best, or the mean, of its comparisons.

    .. math:: s_{ij} = \mathrm{score}(f(a_i), f(b_j)), \qquad
        p = \mathrm{selection}(\max_j s_{ij}), \quad q = \mathrm{selection}(\max_i s_{ij}), \qquad
        f(x) = \mathrm{relu}(W x + b)

    Positions that the mask excludes are compared with nothing. If the other side has none at all, the scores are 0.

    Shapes:
        a (batch, n, dim), b (batch, m, dim), with masks bool (batch, n) and (batch, m), and values of the same lengths
        -> two readings of one query each.

    Reference:
        Tay et al. (2018), arXiv:1801.09251, sections 3.2 and 3.3.

    Args:
        dim: features of a position.
        selection: makes the selection of each side.
        score: how two positions are compared, a short name or an instance.
        hidden_dim: features of f; None compares the positions as they are.
        pooling: "max", to choose a position, or "mean", to weigh them.
    """

    def __init__(
        self,
        *,
        dim: int,
        selection: Callable[[], Selection],
        score: str | Score | partial[Score] = "bilinear",
        hidden_dim: int | None = None,
        pooling: Literal["max", "mean"] = "max",
    ) -> None:
        super().__init__()
        if pooling not in ("max", "mean"):
            raise ValueError(f"pooling must be 'max' or 'mean', got {pooling!r}.")
        size = dim if hidden_dim is None else hidden_dim
        self.hidden = nn.Identity() if hidden_dim is None else nn.Sequential(nn.Linear(dim, hidden_dim), nn.ReLU())
        self.score = make_score(score, query_dim=size, key_dim=size, hidden_dim=size, dim=size)
        self.user = Attention(score=GivenScore(), selection=selection())
        self.item = Attention(score=GivenScore(), selection=selection())
        self.pooling = pooling

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor, a_values: Tensor, b_values: Tensor) -> Both:
        scores = self.score(self.hidden(a), self.hidden(b))
        pairs = a_mask.unsqueeze(2) & b_mask.unsqueeze(1)
        own = self._pooled(scores, pairs, 2).unsqueeze(-1)
        others = self._pooled(scores, pairs, 1).unsqueeze(-1)
        return Both(
            self.user(None, own, a_values, mask=a_mask.unsqueeze(1)),
            self.item(None, others, b_values, mask=b_mask.unsqueeze(1)),
        )

    def _pooled(self, scores: Tensor, pairs: Tensor, dim: int) -> Tensor:
        """The best or the mean score of each position; 0 where there is nothing to compare with."""
        if self.pooling == "mean":
            return (scores * pairs).sum(dim) / pairs.sum(dim).clamp(min=1)
        best = scores.masked_fill(~pairs, torch.finfo(scores.dtype).min).amax(dim)
        return best.masked_fill(~pairs.any(dim), 0.0)
