"""Negative distance score."""

from typing import Any

import torch
from torch import Tensor

from saccade.scores.base import Prepared, Score, check_same_features, scores


def squared_distance(query: Tensor, keys: Tensor) -> Tensor:
    """(*batch, queries, dim), (*batch, keys, dim) -> |q_i - k_j|^2, without a (queries, keys, dim) tensor.

    Computed from differences: |q|^2 - 2 q.k + |k|^2 loses all precision for nearby points far from the origin.
    """
    exact = torch.promote_types(query.dtype, torch.float32)
    distance = torch.cdist(query.to(exact), keys.to(exact), compute_mode="donot_use_mm_for_euclid_dist")
    return distance.square().to(query.dtype)


@scores.register("negative_distance")
class NegativeDistanceScore(Score):
    r"""The nearer the key, the higher the score; softmax over it is kernel regression.

    .. math:: s_{ij} = -\frac{|q_i - k_j|^2}{2 \sigma^2}

    Shapes:
        query (*batch, queries, dim), keys (*batch, keys, dim) -> scores (*batch, queries, keys), never above 0.

    Reference:
        Nadaraya (1964), Watson (1964), with a Gaussian kernel; sigma is `bandwidth`.
    """

    same_features = True

    def __init__(self, *, bandwidth: float = 1.0) -> None:
        super().__init__()
        if not bandwidth > 0:
            raise ValueError(f"bandwidth must be above 0, got {bandwidth}.")
        self.bandwidth = bandwidth

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_same_features(query, prepared, self)
        return squared_distance(query, prepared) * (-0.5 / self.bandwidth**2)
