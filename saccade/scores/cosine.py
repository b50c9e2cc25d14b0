"""Cosine score."""

from torch import Tensor
from torch.nn import functional as F

from saccade.scores.base import DotProduct, Prepared, scores
from saccade.scores.dot import DotScore

SMALLEST_NORM = 1e-6
"""Shorter vectors are treated as having this norm, so that a zero vector has cosine 0 and a finite gradient."""


@scores.register("cosine")
class CosineScore(DotScore):
    r"""Compares query and key by direction only.

    .. math:: s_{ij} = \frac{q_i^\top k_j}{|q_i|\, |k_j|}

    Scores lie between -1 and 1, so softmax over many keys is flat; `Softmax(temperature=0.1)` sharpens it.

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys).

    Reference:
        Graves et al. (2014), arXiv:1410.5401, equation 6.
    """

    same_features = True

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        return F.normalize(keys, dim=-1, eps=SMALLEST_NORM)

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        return super().as_dot_product(F.normalize(query, dim=-1, eps=SMALLEST_NORM), prepared)
