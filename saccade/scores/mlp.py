"""Deep score."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("mlp")
class MLPScore(Score):
    r"""Compares query and key through several hidden layers over their concatenation.

    .. math:: s_{ij} = w^\top h^{(L)}_{ij}, \qquad h^{(1)}_{ij} = \mathrm{act}(W_1 [q_i; k_j] + b_1), \qquad
        h^{(l)}_{ij} = \mathrm{act}(W_l h^{(l-1)}_{ij} + b_l)

    L is `num_layers`; act is ReLU by default. The first layer is split, so that its half for the keys is computed once;
    the other layers run on every pair, so memory grows with queries x keys x hidden_dim.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, section 3.1: the alignment model is a feed-forward network.
    """

    query_dim: int

    def __init__(
        self, *, query_dim: int, key_dim: int, hidden_dim: int, num_layers: int = 2, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.proj = nn.Linear(query_dim + key_dim, hidden_dim)
        self.hidden_layers = nn.ModuleList(nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers - 1))
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.activation = nn.ReLU() if activation is None else activation

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return F.linear(keys, self.proj.weight[:, self.query_dim :], self.proj.bias)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        projected = F.linear(query, self.proj.weight[:, : self.query_dim])
        hidden = self.activation(projected.unsqueeze(-2) + prepared.unsqueeze(-3))
        for layer in self.hidden_layers:
            hidden = self.activation(layer(hidden))
        scores: Tensor = self.hidden_proj(hidden).squeeze(-1)
        return scores
