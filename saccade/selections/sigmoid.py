"""Sigmoid selection."""

from typing import Any

import torch
from torch import Tensor

from saccade.distributions import Bernoulli, Distribution
from saccade.selections.base import Selection, selections


@selections.register("sigmoid")
class Sigmoid(Selection):
    r"""Picks each position by itself: any number of them, or none.

    .. math:: p_j = \sigma(s_j / \tau)

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Bernoulli` for each key.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, where it is the binary selection without a structure.
    """

    def __init__(self, *, temperature: float = 1.0) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        self.temperature = temperature

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = scores.masked_fill(~mask, 0.0) / self.temperature
        return Bernoulli(torch.sigmoid(logits).masked_fill(~mask, 0.0), logits=logits, training=self.training)
