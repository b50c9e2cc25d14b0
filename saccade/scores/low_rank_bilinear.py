"""Low-rank bilinear score."""

from torch import Tensor, nn

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores


@scores.register("low_rank_bilinear")
class LowRankBilinearScore(Score):
    r"""A bilinear score whose matrix has a bounded rank.

    .. math:: s_{ij} = (P q_i)^\top (Q k_j) = q_i^\top P^\top Q\, k_j

    P is `query_proj`, Q is `key_proj`.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Kim et al. (2017), arXiv:1610.04325, low-rank bilinear pooling.
    """

    def __init__(self, *, query_dim: int, key_dim: int, rank: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, rank, bias=False)
        self.key_proj = nn.Linear(key_dim, rank, bias=False)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return self.key_proj(keys)

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        return DotProduct(self.query_proj(query), prepared, 1.0)
