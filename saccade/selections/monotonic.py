"""Monotonic attention."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.distributions import Distribution
from saccade.kernels.scan import linear_recurrence
from saccade.selections.base import Selection, selections
from saccade.selections.previous import last_distribution, previous_weights, remembering, working_dtype


@selections.register("monotonic")
class Monotonic(Selection):
    r"""Scans the keys from where the last step stopped, and stops at each with some probability.

    .. math:: p_{ij} = \sigma(s_{ij} + r + \epsilon), \qquad q_{ij} = (1 - p_{i,j-1})\, q_{i,j-1} + \alpha_{i-1,j},
        \qquad \alpha_{ij} = p_{ij}\, q_{ij}

    In training the weights are the expectation over all scans. Evaluation makes a hard choice: the first key from the
    last position on with p >= `threshold`. If a row sums to less than one, the rest is the probability that the scan
    passed the last key: then nothing is read at this or any later step. Noise epsilon with standard deviation `noise`,
    added in training only, pushes p towards 0 and 1. The first scan starts at the first key.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a defective `Categorical` over keys.
        The state is the previous weights (*batch, 1, keys).

    Reference:
        Raffel et al. (2017), arXiv:1704.00784, section 2; r is `offset`, for scores without one (unlike
        `MonotonicEnergyScore`).

    Args:
        noise: standard deviation of the noise in training; 0 for none.
        offset: added to the scores; negative values let early scans reach further.
        learn_offset: whether the offset is a parameter.
        threshold: evaluation stops at a key with at least this probability.
        hard_at_eval: whether evaluation makes hard choices; otherwise it computes the expectation, as in training.
    """

    stateful = True

    def __init__(
        self,
        *,
        noise: float = 1.0,
        offset: float = 0.0,
        learn_offset: bool = False,
        threshold: float = 0.5,
        hard_at_eval: bool = True,
    ) -> None:
        super().__init__()
        if not noise >= 0:
            raise ValueError(f"noise must be 0 or more, got {noise}.")
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold must be between 0 and 1, got {threshold}.")
        self.noise = noise
        self.offset = nn.Parameter(torch.tensor(float(offset))) if learn_offset else offset
        self.threshold = threshold
        self.hard_at_eval = self.online = hard_at_eval
        self.stochastic = noise > 0 or hard_at_eval

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return remembering(self.stops(scores, mask, state), scores, defective=True, training=self.training)

    def stops(self, scores: Tensor, mask: Tensor, state: Tensor | None) -> Tensor:
        """alpha (*batch, queries, keys): the probability that each query's scan stops at a key."""
        if scores.numel() == 0:
            return torch.zeros_like(scores)
        stop, walk_on = self._choices(scores, mask)
        decay = F.pad(walk_on, (1, 0))[..., :-1]
        weights = previous_weights(state, scores, mask)
        rows = []
        for stop_here, decay_here in zip(stop.unbind(-2), decay.unbind(-2), strict=True):
            weights = stop_here * linear_recurrence(decay_here, weights)
            rows.append(weights)
        return torch.stack(rows, dim=-2)

    def _choices(self, scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """p and 1 - p for each query and key."""
        logits = scores.masked_fill(~mask, 0.0).to(working_dtype(scores)) + self.offset
        if self.training and self.noise > 0:
            logits = logits + self.noise * torch.randn_like(logits)
        if self.hard_at_eval and not self.training:
            stop = (torch.sigmoid(logits) >= self.threshold) & mask
            return stop.to(logits.dtype), (~stop).to(logits.dtype)
        return torch.sigmoid(logits).masked_fill(~mask, 0.0), torch.sigmoid(-logits).masked_fill(~mask, 1.0)

    def advance(self, state: Any, distribution: Distribution) -> Any:
        return last_distribution(distribution, state)
