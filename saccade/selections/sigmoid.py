"""Sigmoid selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.aggregations import Aggregation, RenormalizedMean
from saccade.distributions import Bernoulli, Distribution
from saccade.selections.base import Selection, selections


@selections.register("sigmoid")
class Sigmoid(Selection):
    r"""Picks each position independently: any number of them, or none.

    .. math:: p_j = \sigma(s_j / \tau)

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Bernoulli` for each key.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, where it is the binary selection without structure. Their \lambda is
        `mass`, 2; in translation they use it for the linear chain only.

    Args:
        temperature: the divisor of the scores.
        mass: the sum of the weights in the default aggregation; None leaves the weights unscaled, so that many keys
            give a context with a large norm.
    """

    def __init__(self, *, temperature: float = 1.0, mass: float | None = None) -> None:
        super().__init__()
        if mass is not None and not mass > 0:
            raise ValueError(f"mass must be above 0, got {mass}.")
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        self.temperature = temperature
        self.mass = mass

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = scores.masked_fill(~mask, 0.0) / self.temperature
        return Bernoulli(torch.sigmoid(logits).masked_fill(~mask, 0.0), logits=logits, training=self.training)

    def default_aggregation(self) -> Aggregation | None:
        return None if self.mass is None else RenormalizedMean(scale=self.mass)
