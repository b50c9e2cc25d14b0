"""Linear-chain selection."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from saccade.aggregations import Aggregation, RenormalizedMean
from saccade.distributions import Distribution
from saccade.distributions.chain import Segmentation
from saccade.selections.base import Selection, selections


@selections.register("linear_chain")
class LinearChain(Selection):
    r"""Picks segments: each key is in or out, and neighbouring keys are coupled.

    .. math:: p(z) \propto \exp\Big(\sum_j s_j z_j + \sum_j b_{z_j, z_{j+1}}\Big), \qquad z_j \in \{0, 1\}

    The weights are p(z_j = 1). Any number of keys may be picked, so the default aggregation rescales the weights to sum
    to `mass` (the paper's \lambda). Masked keys are removed: the keys on either side become neighbours.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Segmentation`, one for each query.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, section 3.1 and 4.2; \theta_j(1) is the score, \theta_j(0) = 0.

    Args:
        mass: the sum of the weights in the default aggregation.
        transitions: the (initial) value of b, as ((b00, b01), (b10, b11)).
        learn_transitions: whether b is a parameter.
        start_and_stop: whether to add transitions into the first key and out of the last, as in the authors' code: the
            mean of those into or out of the same state.
    """

    def __init__(
        self,
        *,
        mass: float = 2.0,
        transitions: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0)),
        learn_transitions: bool = True,
        start_and_stop: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < mass < math.inf:
            raise ValueError(f"mass must be above 0 and finite, got {mass}.")
        try:
            rows = [[float(b) for b in row] for row in transitions]
        except TypeError:
            rows = []
        if [len(row) for row in rows] != [2, 2] or not all(math.isfinite(b) for row in rows for b in row):
            raise ValueError(f"transitions must be finite ((b00, b01), (b10, b11)), got {transitions}.")
        self.mass = mass
        self.transitions = nn.Parameter(
            torch.tensor(rows, dtype=torch.get_default_dtype()), requires_grad=learn_transitions
        )
        self.start_and_stop = start_and_stop

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Segmentation.of(
            scores, self.transitions, mask, start_and_stop=self.start_and_stop, training=self.training
        )

    def penalty(self, strength: float = 0.005) -> Tensor:
        """The squared norm of b times `strength`, to be added to the loss."""
        return strength * self.transitions.square().sum()

    def default_aggregation(self) -> Aggregation:
        return RenormalizedMean(scale=self.mass)
