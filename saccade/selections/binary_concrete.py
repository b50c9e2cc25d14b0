"""Binary concrete selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.aggregations import Aggregation, Sample
from saccade.distributions import Bernoulli, Distribution
from saccade.kernels.modes import exporting
from saccade.selections.base import Selection, selections
from saccade.selections.previous import working_dtype


@selections.register("binary_concrete")
class BinaryConcrete(Selection):
    r"""Picks each position independently, by a sample in [0, 1] through which gradients flow.

    .. math:: p_j = \sigma(s_j), \qquad z_j = \sigma\left(\frac{s_j + \log U_j - \log(1 - U_j)}{\tau}\right),
        \quad U_j \sim \operatorname{Uniform}(0, 1)

    As the temperature tau goes to 0, z becomes a sample of p. With `straight_through`, z is that sample, 0 or 1, and
    the gradient is that of the relaxed one. Evaluation picks the positions with p of at least a half.

    With a `share`, each row's scores are shifted by a threshold that exactly this share of them reaches; samples use
    the threshold of the noisy scores, treated as a constant in gradients. Training and evaluation then pick equally
    many positions. Without it, training could sample many positions with small p, none of which reaches a half, and
    evaluation would pick nothing.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Bernoulli` for each key.

    Reference:
        Maddison et al. (2017), arXiv:1611.00712, appendix B; Jang et al. (2017), arXiv:1611.01144.

    Args:
        temperature: tau.
        straight_through: whether a sample is exactly 0 or 1.
        share: of the positions to pick, at least one; None for any number.
    """

    stochastic = True

    def __init__(self, *, temperature: float = 1.0, straight_through: bool = False, share: float | None = None) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        if share is not None and not 0.0 < share <= 1.0:
            raise ValueError(f"share must be above 0 and at most 1, got {share}.")
        self.temperature = temperature
        self.straight_through = straight_through
        self.share = share

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = given = scores.masked_fill(~mask, 0.0)
        if self.share is not None:
            logits = (given - threshold(given, mask, self.share)).masked_fill(~mask, 0.0)
        probs = torch.sigmoid(logits).masked_fill(~mask, 0.0)
        plain = Bernoulli(probs, logits=logits, training=self.training)
        drawn = self.relaxed(given, mask).masked_fill(~mask, 0.0) if self.training else plain.mode
        return Bernoulli(probs, logits=logits, training=self.training, drawn=drawn)

    def relaxed(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        """A relaxed sample of positions with these logits, of any shape; a `share` is one of the keys in the mask."""
        dtype = working_dtype(logits)
        limits = torch.finfo(dtype)
        uniform = torch.rand(logits.shape, dtype=dtype, device=logits.device).clamp(limits.tiny, 1 - limits.eps)
        noisy = logits + uniform.logit()
        if self.share is not None and mask is not None:
            noisy = noisy - threshold(noisy.detach(), mask, self.share)
        soft = torch.sigmoid(noisy / self.temperature).to(logits.dtype)
        if not self.straight_through:
            return soft
        # In this order the difference is exactly zero, so the sample is exactly 0 or 1.
        return (soft.detach() >= 0.5).to(soft.dtype) + (soft - soft.detach())

    def default_aggregation(self) -> Aggregation | None:
        return Sample()


def threshold(values: Tensor, mask: Tensor, share: float) -> Tensor:
    """(*batch, 1): between the last value that belongs to the largest share of each row and the next; 0 if empty."""
    if not exporting() and not values.shape[-1]:
        return values.new_zeros(*values.shape[:-1], 1)
    count = mask.sum(-1, keepdim=True)
    wanted = (share * count).round().long().clamp(min=1)
    ordered = values.masked_fill(~mask, -torch.inf).sort(dim=-1, descending=True).values
    last = ordered.gather(-1, wanted - 1)
    after = ordered.gather(-1, wanted.clamp(max=values.shape[-1] - 1))
    between = torch.where(wanted < count, (last + after) / 2, last - 1.0)
    return torch.where(count > 0, between, 0.0)
