"""Positions that are decided one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.distributions.base import Distribution, check_indicator
from saccade.distributions.bernoulli import Bernoulli


@dataclass(frozen=True, eq=False)
class BinarySequence(Distribution):
    r"""Any subset of the positions, each picked or not given what was decided before it.

    .. math:: p(z) = \prod_j p(z_j \mid z_1, ..., z_{j-1})

    Log-probabilities are exact. The true marginals sum over all prefixes, of which there are too many:
    `marginals` are the conditional probabilities along the draw instead, and `entropy` is the sum of their entropies.
    Both are unbiased estimates where the draw is a sample. The mode is greedy.

    Args:
        along: the draw, and the probability of each position given the draw's decisions before it.
        given: the same for any z (*batch, queries, keys).
        decide: a new z, a sample (True) or greedy (False); gradients do not flow through it.
        training: whether the draw is a sample.
    """

    along: Bernoulli
    given: Callable[[Tensor], Bernoulli]
    decide: Callable[[bool], Tensor]
    training: bool = False

    @property
    def marginals(self) -> Tensor:
        return self.along.probs

    @property
    def mode(self) -> Tensor:
        return self.decide(False)

    @property
    def draw(self) -> Tensor:
        return self.along.draw

    @property
    def picked(self) -> Tensor:
        return self.along.draw

    def sample(self, n: int | None = None) -> Tensor:
        return self.decide(True) if n is None else torch.stack([self.decide(True) for _ in range(n)])

    def log_prob(self, z: Tensor) -> Tensor:
        check_indicator(z, self.marginals.shape[-1])
        return (self.along if torch.equal(z, self.draw) else self.given(z)).log_prob(z)

    def entropy(self) -> Tensor:
        return self.along.entropy()
