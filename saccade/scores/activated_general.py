"""Activated general score."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("activated_general")
class ActivatedGeneralScore(Score):
    r"""A bilinear score with a bias and an activation.

    .. math:: s_{ij} = \mathrm{act}(q_i^\top W k_j + b)

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Ma et al. (2017), arXiv:1709.00893; act is tanh by default.
    """

    def __init__(self, *, query_dim: int, key_dim: int, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, key_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(()))
        self.activation = nn.Tanh() if activation is None else activation

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return keys

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        scores: Tensor = self.activation(self.query_proj(query) @ prepared.transpose(-1, -2) + self.bias)
        return scores
