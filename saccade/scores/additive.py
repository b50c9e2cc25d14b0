"""Additive score."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.kernels.additive import additive_scores
from saccade.scores.base import HiddenLayer, Prepared, Score, check_features, scores


@scores.register("additive")
class AdditiveScore(Score):
    r"""Compares query and key through one hidden layer.

    .. math:: s_{ij} = \mathrm{act}(v^\top \tanh(W q_i + U k_j + b))

    In the paper q_i is the decoder state s_{i-1} and k_j the annotation h_j; b is used with `bias=True`, and act is the
    identity by default; Kim et al. (2017), arXiv:1702.00887, use `nn.Tanh()` for tree potentials.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2; W, U, v are W_a, U_a, v_a.
    """

    def __init__(
        self,
        *,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        bias: bool = False,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=bias)
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.activation = nn.Identity() if activation is None else activation

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        scores = additive_scores(self.query_proj(query), prepared, self.hidden_proj.weight.squeeze(0))
        activated: Tensor = self.activation(scores)
        return activated

    def hidden_layer(self) -> HiddenLayer | None:
        if self.key_proj.bias is not None or type(self.activation) is not nn.Identity:
            return None
        return HiddenLayer(self.query_proj.weight, self.key_proj.weight, self.hidden_proj.weight.squeeze(0))

    @torch.no_grad()
    def start_as_paper(self) -> None:
        """W and U from N(0, 0.001²), and v zero: appendix B.1."""
        self.query_proj.weight.normal_(0.0, 0.001)
        self.key_proj.weight.normal_(0.0, 0.001)
        self.hidden_proj.weight.zero_()
