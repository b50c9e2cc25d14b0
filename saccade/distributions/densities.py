"""Densities over the real line for continuous attention."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Density(Protocol):
    """A density with location `mu` and squared scale `sigma2`, each broadcastable with the points."""

    def __init__(self, mu: Tensor, sigma2: Tensor) -> None: ...

    @property
    def variance(self) -> Tensor:
        """The variance of t."""
        ...

    def density(self, t: Tensor) -> Tensor:
        """p(t)."""
        ...

    def cumulative(self, t: Tensor) -> Tensor:
        """The mass up to t."""
        ...

    def expected_bump(self, centre: Tensor, width: Tensor) -> Tensor:
        """E[N(t; centre, width^2)]: the expectation of a Gaussian basis function."""
        ...


class Gaussian(NamedTuple):
    r"""The density of continuous softmax: N(mu, sigma2)."""

    mu: Tensor
    sigma2: Tensor

    @property
    def variance(self) -> Tensor:
        return self.sigma2

    def density(self, t: Tensor) -> Tensor:
        return _normal((t - self.mu) / self.sigma2.sqrt()) / self.sigma2.sqrt()

    def cumulative(self, t: Tensor) -> Tensor:
        return _normal_cumulative((t - self.mu) / self.sigma2.sqrt())

    def expected_bump(self, centre: Tensor, width: Tensor) -> Tensor:
        return Gaussian(self.mu, self.sigma2 + width**2).density(centre)


class TruncatedParabola(NamedTuple):
    r"""The density of continuous sparsemax: zero outside mu ± a.

    .. math:: p(t) = \max\left(0, -\frac{(t - \mu)^2}{2 \sigma^2} - \lambda\right), \qquad
        a = \left(\tfrac{3}{2} \sigma^2\right)^{1/3}, \quad \lambda = -\frac{a^2}{2 \sigma^2}

    So p(t) = 3 (1 - u^2) / (4 a) with u = (t - mu) / a, and the variance is a^2 / 5.
    """

    mu: Tensor
    sigma2: Tensor

    @property
    def half_width(self) -> Tensor:
        return (1.5 * self.sigma2) ** (1 / 3)

    @property
    def threshold(self) -> Tensor:
        """The paper's lambda."""
        return -(self.half_width**2) / (2 * self.sigma2)

    @property
    def variance(self) -> Tensor:
        return self.half_width**2 / 5

    def density(self, t: Tensor) -> Tensor:
        u = (t - self.mu) / self.half_width
        return 0.75 * (1 - u**2).clamp(min=0) / self.half_width

    def cumulative(self, t: Tensor) -> Tensor:
        u = ((t - self.mu) / self.half_width).clamp(-1, 1)
        return 0.5 + 0.75 * (u - u**3 / 3)

    def expected_bump(self, centre: Tensor, width: Tensor) -> Tensor:
        # In units of the bump, x = (t - centre) / width, the parabola's middle is d and its support [low, high].
        d = (self.mu - centre) / width
        low, high = d - self.half_width / width, d + self.half_width / width
        mass = _normal_cumulative(high) - _normal_cumulative(low)
        first = _normal(high) - _normal(low)
        second = high * _normal(high) - low * _normal(low)
        squares = (1 + d**2) * mass - second + 2 * d * first  # of x - d, under the bump and within the support
        return -self.threshold * mass - width**2 / (2 * self.sigma2) * squares


def _normal(x: Tensor) -> Tensor:
    return torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def _normal_cumulative(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))
