"""Continuous positions."""

from dataclasses import dataclass

from torch import Tensor

from saccade.distributions.categorical import Categorical
from saccade.distributions.densities import Density


@dataclass(frozen=True, eq=False, kw_only=True)
class Continuous(Categorical):
    """A density over [0, 1], divided into one cell per key: z is the key in whose cell the point falls.

    The cell of the l-th of S attendable keys is [(l - 1) / S, l / S]; a point outside [0, 1] picks nothing. Values are
    read as a function of t through a basis, so the coefficients of an expectation are not the masses of the cells.

    Args:
        mu, sigma2: (*batch, queries, 1), the density's location and squared scale.
        kind: the density.
        readout: (*batch, queries, keys), the coefficients of the values in an expectation; may be negative.
    """

    mu: Tensor
    sigma2: Tensor
    kind: type[Density]
    readout: Tensor

    @property
    def coefficients(self) -> Tensor:
        return self.readout

    @property
    def variance(self) -> Tensor:
        """(*batch, queries, 1): the variance of t."""
        return self.kind(self.mu, self.sigma2).variance

    def density(self, t: Tensor) -> Tensor:
        """(*batch, queries, points): p(t) at t (points,)."""
        return self.kind(self.mu, self.sigma2).density(t)
