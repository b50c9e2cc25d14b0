"""Kernel score."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.scores.base import DotProduct, Prepared, Score, check_same_features, scores


def positive_features(x: Tensor) -> Tensor:
    """elu(x) + 1, computed so that it stays above zero for very negative x."""
    return torch.where(x > 0, x + 1.0, x.clamp(max=0.0).exp())


@scores.register("kernel")
class KernelScore(Score):
    r"""Compares positive features of query and key: the kernel of linear attention.

    .. math:: s_{ij} = \phi(q_i)^\top \phi(k_j), \qquad \phi(x) = \mathrm{elu}(x) + 1

    Scores are positive and meant to be normalised by their sum, not exponentiated; `Attention` does this by default.

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys), positive.

    Reference:
        Katharopoulos et al. (2020), arXiv:2006.16236, section 3.2.
    """

    default_selection = "relu_normalized"

    same_features = True

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        return positive_features(keys)

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct:
        check_same_features(query, prepared, self)
        return DotProduct(positive_features(query), prepared, 1.0)
