"""Gaussian kernel score."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.scores.base import Prepared, scores
from saccade.scores.negative_distance import NegativeDistanceScore


@scores.register("rbf_kernel")
class RBFKernelScore(NegativeDistanceScore):
    r"""A Gaussian kernel around each query.

    .. math:: s_{ij} = \exp\left(-\frac{|q_i - k_j|^2}{2 \sigma^2}\right)

    Scores are positive and meant to be normalised by their sum, not exponentiated; `Attention` does this by default.
    Far from all keys every score underflows to zero; `NegativeDistanceScore` with softmax gives the same weights
    without underflow.

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys) between 0 and 1.

    Reference:
        Nadaraya (1964), Watson (1964); sigma is `bandwidth`.
    """

    default_selection = "relu_normalized"

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        return super().compare(query, prepared).exp()
