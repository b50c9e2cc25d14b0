"""Each position by itself."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.distributions.base import Distribution, plogp


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    """Any subset of the positions, each picked independently.

    Args:
        probs: (*batch, queries, keys), zero on masked keys.
        training: whether `draw` samples.
    """

    probs: Tensor
    training: bool = False

    @property
    def marginals(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype)

    def sample(self, n: int | None = None) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(n or 1, *self.probs.shape) if n is not None else self.probs)

    def log_prob(self, z: Tensor) -> Tensor:
        chosen = torch.where(z > 0, self.probs, 1.0 - self.probs)
        logs = torch.where(chosen > 0, torch.where(chosen > 0, chosen, 1.0).log(), -torch.inf)
        return torch.where(((z == 0) | (z == 1)).all(-1), logs.sum(-1), -torch.inf)

    def entropy(self) -> Tensor:
        return -(plogp(self.probs) + plogp(1.0 - self.probs)).sum(-1)
