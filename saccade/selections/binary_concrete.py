"""Binary concrete selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.aggregations import Aggregation, Sample
from saccade.distributions import Bernoulli, Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.previous import working_dtype


@selections.register("binary_concrete")
class BinaryConcrete(Selection):
    r"""Picks each position independently, by a sample in [0, 1] that gradients pass through.

    .. math:: p_j = \sigma(s_j), \qquad z_j = \sigma\left(\frac{s_j + \log U_j - \log(1 - U_j)}{\tau}\right),
        \quad U_j \sim \operatorname{Uniform}(0, 1)

    As the temperature tau goes to 0, z becomes a sample of p. With `straight_through`, z is that sample, 0 or 1, and
    the gradient is that of the relaxed one. Evaluation picks the positions with p of at least a half.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Bernoulli` for each key.

    Reference:
        Maddison et al. (2017), arXiv:1611.00712, appendix B; Jang et al. (2017), arXiv:1611.01144.
    """

    stochastic = True

    def __init__(self, *, temperature: float = 1.0, straight_through: bool = False) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        self.temperature = temperature
        self.straight_through = straight_through

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = scores.masked_fill(~mask, 0.0)
        probs = torch.sigmoid(logits).masked_fill(~mask, 0.0)
        plain = Bernoulli(probs, logits=logits, training=self.training)
        drawn = self.relaxed(logits).masked_fill(~mask, 0.0) if self.training else plain.mode
        return Bernoulli(probs, logits=logits, training=self.training, drawn=drawn)

    def relaxed(self, logits: Tensor) -> Tensor:
        """A relaxed sample of independent positions with these logits, of any shape."""
        dtype = working_dtype(logits)
        limits = torch.finfo(dtype)
        uniform = torch.rand(logits.shape, dtype=dtype, device=logits.device).clamp(limits.tiny, 1 - limits.eps)
        soft = torch.sigmoid((logits + uniform.logit()) / self.temperature).to(logits.dtype)
        if not self.straight_through:
            return soft
        # In this order the difference is exactly zero, so the sample is exactly 0 or 1.
        return (soft.detach() >= 0.5).to(soft.dtype) + (soft - soft.detach())

    def default_aggregation(self) -> Aggregation | None:
        return Sample()
