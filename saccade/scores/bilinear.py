"""Bilinear score."""

from typing import ClassVar

from torch import Tensor, nn

from saccade.scores.base import DotProduct, Prepared, Score, check_features, scores


@scores.register("bilinear", aliases=["general"])
class BilinearScore(Score):
    r"""Compares query and key by a learned inner product.

    .. math:: s_{ij} = q_i^\top W k_j

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.1, "general": W is W_a; `query_proj.weight` is its transpose.
    """

    _bias: ClassVar[bool] = False

    def __init__(self, *, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.query_proj = nn.Linear(query_dim, key_dim, bias=self._bias)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return keys

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_features(query, self.query_dim, "query", self, "query_dim")
        return DotProduct(self.query_proj(query), prepared, 1.0)
