"""Concat score."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.kernels.additive import additive_scores
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("concat")
class ConcatScore(Score):
    r"""Compares query and key through one hidden layer over their concatenation.

    .. math:: s_{ij} = v^\top \tanh(W [q_i; k_j])

    This is the additive score with both weight matrices concatenated: `proj.weight` is W, `hidden_proj.weight` is v.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.1, "concat"; W, v are W_a, v_a.
    """

    query_dim: int

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.proj = nn.Linear(query_dim + key_dim, hidden_dim, bias=False)
        self.hidden_proj = nn.Linear(hidden_dim, 1, bias=False)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return F.linear(keys, self.proj.weight[:, self.query_dim :])

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        projected = F.linear(query, self.proj.weight[:, : self.query_dim])
        return additive_scores(projected, prepared, self.hidden_proj.weight.squeeze(0))
