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
    r"""Picks each position by itself: any number of them, or none.

    .. math:: p_j = \sigma(s_j / \tau)

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Bernoulli` for each key.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, where it is the binary selection without a structure. Their \lambda is
        `mass`, 2; in translation they give it to the linear chain alone.

    Args:
        temperature: what scores are divided by.
        mass: the weights' sum in the default aggregation; None leaves them as they are, so that many keys give a
            long context.
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
