"""Dot-product score."""

from torch import Tensor

from saccade.scores.base import DotProduct, Prepared, Score, check_same_features, scores


@scores.register("dot")
class DotScore(Score):
    r"""Compares query and key by their inner product.

    .. math:: s_{ij} = q_i^\top k_j

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys).

    Reference:
        Luong et al. (2015), arXiv:1508.04025, section 3.1, "dot": q_i is the decoder state h_t, k_j the source
        state \bar h_s.
    """

    same_features = True

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_same_features(query, prepared, self)
        return DotProduct(query, prepared, self.scale(query.shape[-1]))

    def scale(self, dim: int) -> float:
        """The factor of inner products of `dim` features."""
        return 1.0

    def inner_product_scale(self, dim: int) -> float | None:
        return self.scale(dim)
