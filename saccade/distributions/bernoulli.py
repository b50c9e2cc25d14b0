"""Independent positions."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.distributions.base import Distribution, check_indicator


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    """Any subset of the positions, each picked independently.

    Args:
        probs: (*batch, queries, keys), zero on masked keys.
        logits: finite scores whose sigmoid is `probs` on keys that are not masked, if known; they give more exact
            log-probabilities.
        training: whether `draw` samples.
        drawn: the value of `draw`, if the selection has made it: a relaxed sample, for example.
    """

    probs: Tensor
    logits: Tensor | None = None
    training: bool = False
    drawn: Tensor | None = None

    @property
    def marginals(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype)

    @property
    def draw(self) -> Tensor:
        return super().draw if self.drawn is None else self.drawn

    @property
    def picked(self) -> Tensor | None:
        return super().picked if self.drawn is None else self.drawn

    def sample(self, n: int | None = None) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs if n is None else self.probs.expand(n, *self.probs.shape))

    @property
    def _log_probs(self) -> tuple[Tensor, Tensor]:
        """log P(z_j = 1) and log P(z_j = 0), each 0 where it is impossible."""
        may = self.probs > 0
        if self.logits is not None:
            picked, left = F.logsigmoid(self.logits), F.logsigmoid(-self.logits)
            return torch.where(may, picked, 0.0), torch.where(may, left, 0.0)
        may_not = self.probs < 1
        return torch.where(may, self.probs, 1.0).log(), torch.where(may_not, 1.0 - self.probs, 1.0).log()

    def log_prob(self, z: Tensor) -> Tensor:
        check_indicator(z, self.probs.shape[-1])
        picked, left = self._log_probs
        impossible = (z > 0) & (self.probs <= 0)
        if self.logits is None:
            impossible = impossible | ((z == 0) & (self.probs >= 1))
        well_formed = ((z == 0) | (z == 1)).all(-1)
        return torch.where(well_formed & ~impossible.any(-1), torch.where(z > 0, picked, left).sum(-1), -torch.inf)

    def entropy(self) -> Tensor:
        picked, left = self._log_probs
        return -(self.probs * picked + (1.0 - self.probs) * left).sum(-1)
