"""Scaled dot-product score."""

from saccade.scores.base import scores
from saccade.scores.dot import DotScore


@scores.register("scaled_dot")
class ScaledDotScore(DotScore):
    r"""Inner product divided by the square root of the dimension, so that its variance does not grow with it.

    .. math:: s_{ij} = \frac{q_i^\top k_j}{\sqrt{d}}

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1; d is d_k.
    """

    def scale(self, dim: int) -> float:
        return float(max(dim, 1) ** -0.5)
