"""One position, or none."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.distributions.base import Distribution, check_indicator, one_hot, plogp


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """At most one position for each query.

    Args:
        probs: (*batch, queries, keys), zero on masked keys.
        logits: scores whose softmax is `probs`, if known; they give more exact log-probabilities.
        defective: whether rows may sum to less than one; the rest is the probability that nothing is picked (monotonic
            attention that passes the last key, a Gaussian window that is not renormalised).
        training: whether `draw` samples.
        exact: `probs` before rounding to half precision, if the next step continues from them.
    """

    probs: Tensor
    logits: Tensor | None = None
    defective: bool = False
    training: bool = False
    exact: Tensor | None = None

    @property
    def marginals(self) -> Tensor:
        return self.probs

    @property
    def _nothing(self) -> Tensor:
        """(*batch, queries): the probability that no position is picked."""
        if self.defective:
            return (1.0 - self.probs.sum(-1)).clamp(0.0, 1.0)
        return (~(self.probs > 0).any(-1)).to(self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        if self.probs.shape[-1] == 0:
            return torch.zeros_like(self.probs)
        best, index = self.probs.max(-1)
        picked = (best > 0) & (best >= self._nothing)
        return one_hot(index, self.probs.shape[-1], self.probs) * picked.unsqueeze(-1)

    def sample(self, n: int | None = None) -> Tensor:
        with torch.no_grad():
            outcomes = torch.cat([self.probs, self._nothing.unsqueeze(-1)], dim=-1).float()
            rows = outcomes.reshape(-1, outcomes.shape[-1])
            count = 1 if n is None else n
            if count and rows.shape[0]:
                draws = torch.multinomial(rows, count, replacement=True)
            else:
                draws = rows.new_zeros(rows.shape[0], count, dtype=torch.long)
            index = draws.T.reshape(count, *self.probs.shape[:-1])
            z = one_hot(index, outcomes.shape[-1], self.probs)[..., :-1]
        return z if n is not None else z.squeeze(0)

    @property
    def log_probs(self) -> Tensor:
        """log P(z_j = 1), and 0 outside the support, where no gradient flows."""
        support = self.probs > 0
        if self.logits is None:
            return torch.where(support, self.probs, 1.0).log()
        lowest = torch.finfo(self.logits.dtype).min
        return torch.log_softmax(self.logits.masked_fill(~support, lowest), -1).masked_fill(~support, 0.0)

    def log_prob(self, z: Tensor) -> Tensor:
        check_indicator(z, self.probs.shape[-1])
        count = z.sum(-1)
        nothing = self._nothing
        picked = (z * self.log_probs).sum(-1)
        missed = torch.where(nothing > 0, nothing, 1.0).log()
        possible = torch.where(count > 0, ((z == 0) | (self.probs > 0)).all(-1), nothing > 0)
        well_formed = ((z == 0) | (z == 1)).all(-1) & (count <= 1)
        return torch.where(possible & well_formed, torch.where(count > 0, picked, missed), -torch.inf)

    def entropy(self) -> Tensor:
        total = -plogp(self.probs).sum(-1)
        return total - plogp(self._nothing) if self.defective else total
