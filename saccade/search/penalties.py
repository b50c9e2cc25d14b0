"""Length and coverage penalties."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

NEVER_SEEN = 1e-6
"""Lower bound on coverage, so that a position without attention has a large but finite cost."""


class Penalties(NamedTuple):
    r"""The score of a hypothesis.

    .. math::
        s(Y, X) = \frac{\log P(Y | X)}{lp(Y)} + cp(X, Y), \quad
        lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha, \quad
        cp(X, Y) = \beta \sum_i \log \min\left(\sum_j p_{ij}, 1\right)

    |Y| is the number of steps including the end token; p_ij is the attention of step j to source position i.

    Args:
        length: alpha; 0 compares plain log-probabilities, 1 approximately those per token.
        coverage: beta; 0 ignores coverage.

    Reference:
        Wu et al. (2016), arXiv:1609.08144, equation 14.
    """

    length: float
    coverage: float

    def check(self) -> None:
        """Rejects NaN and negative penalties, with which the search could not know when to stop."""
        if not (0 <= self.length < math.inf and 0 <= self.coverage < math.inf):
            raise ValueError(
                f"Penalties must be 0 or more, got length_penalty={self.length}, coverage_penalty={self.coverage}."
            )

    def normalise(self, log_probs: Tensor, steps: Tensor | int) -> Tensor:
        """The log-probabilities divided by lp."""
        return log_probs / ((5 + steps) / 6) ** self.length

    def score(self, log_probs: Tensor, steps: Tensor | int, coverage: Tensor | None, mask: Tensor) -> Tensor:
        """The scores (rows,) of log-probabilities (rows,).

        Args:
            steps: |Y|.
            coverage: (rows, keys), the weights summed over the steps; None without attention.
            mask: (rows, keys), True = real.
        """
        scores = self.normalise(log_probs, steps)
        if coverage is None or not self.coverage:
            return scores
        terms = coverage.clamp(NEVER_SEEN, 1.0).log()
        return scores + self.coverage * torch.where(mask, terms, 0.0).sum(dim=-1)
