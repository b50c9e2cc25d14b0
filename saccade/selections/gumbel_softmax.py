"""Gumbel-softmax selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.aggregations import Aggregation, Sample
from saccade.distributions import Categorical, Distribution, Drawn
from saccade.selections.base import Selection, selections
from saccade.selections.previous import working_dtype
from saccade.selections.softmax import softmax


@selections.register("gumbel_softmax")
class GumbelSoftmax(Selection):
    r"""Samples a position in a differentiable way.

    .. math:: p = \operatorname{softmax}(s), \qquad z = \operatorname{softmax}((s + G) / \tau), \qquad
        G_j = -\log(-\log U_j), \quad U_j \sim \operatorname{Uniform}(0, 1)

    As the temperature tau goes to 0, z becomes a sample of p. With `straight_through`, z is the one-hot argmax, an
    exact sample, and the gradient is that of the relaxed sample. Evaluation uses the most probable position.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Drawn` categorical over keys.

    Reference:
        Jang et al. (2017), arXiv:1611.01144; Maddison et al. (2017), arXiv:1611.00712.
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
        plain = Categorical(softmax(logits, mask=mask), logits=logits, training=self.training)
        drawn = self._relaxed_draw(logits, mask) if self.training else plain.mode
        return Drawn(plain.probs, logits=logits, training=self.training, drawn=drawn)

    def _relaxed_draw(self, logits: Tensor, mask: Tensor) -> Tensor:
        dtype = working_dtype(logits)
        limits = torch.finfo(dtype)
        uniform = torch.rand(logits.shape, dtype=dtype, device=logits.device).clamp(limits.tiny, 1 - limits.eps)
        gumbel = -torch.log(-torch.log(uniform))
        soft = softmax((logits + gumbel) / self.temperature, mask=mask).to(logits.dtype)
        if not self.straight_through:
            return soft
        # In this order the difference is exactly zero, so the sample is exactly one-hot.
        return Categorical(soft.detach()).mode + (soft - soft.detach())

    def default_aggregation(self) -> Aggregation | None:
        return Sample()
