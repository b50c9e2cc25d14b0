"""Query-free score."""

from typing import Any

from torch import Tensor, nn

from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("query_free")
class QueryFreeScore(Score):
    r"""Scores each key on its own, without a query: attention as pooling.

    .. math:: s_j = v^\top \tanh(W k_j + b) \;\text{ or, without a hidden layer, }\; s_j = w^\top k_j + b

    Shapes:
        query ignored, keys (*batch, keys, key_dim) -> scores (*batch, queries, keys), the same for every query;
        `attention(None, keys)` reads with a single query.

    Reference:
        Yang et al. (2016), hierarchical attention networks, equations 5 and 6: v is the word context vector u_w.
        Without a hidden layer: Lei et al. (2016), arXiv:1606.04155, section 3.

    Args:
        key_dim: features of a key.
        hidden_dim: features of the hidden layer; None for no hidden layer.
    """

    query_free: bool = True

    def __init__(self, *, key_dim: int, hidden_dim: int | None = None) -> None:
        super().__init__()
        self.key_dim = key_dim
        self.key_proj = nn.Linear(key_dim, 1 if hidden_dim is None else hidden_dim)
        self.hidden_proj = None if hidden_dim is None else nn.Linear(hidden_dim, 1, bias=False)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        projected: Tensor = self.key_proj(keys)
        return projected if self.hidden_proj is None else self.hidden_proj(projected.tanh())

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        scores: Tensor = prepared.transpose(-1, -2)
        return scores.expand(*scores.shape[:-2], query.shape[-2], scores.shape[-1])
