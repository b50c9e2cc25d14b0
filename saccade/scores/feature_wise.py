"""Feature-wise score."""

from typing import Any

from torch import Tensor, nn

from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("feature_wise")
class FeatureWiseScore(Score):
    r"""One additive score per value channel, so that each channel has its own weights.

    .. math:: s_{dij} = v_d^\top \tanh(W q_i + U k_j + b)

    d is the channel; the values have `num_channels` features.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim)
        -> scores (*batch, num_channels, queries, keys).

    Reference:
        Shen et al. (2018), arXiv:1709.04696, section 3.1, "multi-dimensional attention": the rows v_d are W.
    """

    feature_wise: bool = True

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int, num_channels: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim)
        self.hidden_proj = nn.Linear(hidden_dim, num_channels, bias=False)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        hidden = (self.query_proj(query).unsqueeze(-2) + prepared.unsqueeze(-3)).tanh()
        scores: Tensor = self.hidden_proj(hidden)
        return scores.movedim(-1, -3)
