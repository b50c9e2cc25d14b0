"""Biaffine score."""

from torch import Tensor, nn

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores


@scores.register("biaffine")
class BiaffineScore(Score):
    r"""A bilinear score plus linear terms in the query and the key.

    .. math:: s_{ij} = q_i^\top W k_j + u^\top q_i + w^\top k_j + b

    w is the bias of `query_proj`, u and b are `query_bias`.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Dozat and Manning (2017), arXiv:1611.01734, section 2.2.
    """

    def __init__(self, *, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, key_dim)
        self.query_bias = nn.Linear(query_dim, 1)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return keys

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        bias = self.query_bias(query).expand(*query.shape[:-1], prepared.shape[-2])
        return DotProduct(self.query_proj(query), prepared, 1.0, bias)
