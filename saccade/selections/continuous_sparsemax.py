"""Continuous sparsemax."""

from saccade.distributions import TruncatedParabola
from saccade.selections.base import selections
from saccade.selections.continuous import ContinuousSelection


@selections.register("continuous_sparsemax")
class ContinuousSparsemax(ContinuousSelection):
    r"""Reads the values as a continuous function of t in [0, 1] under a truncated parabola.

    .. math:: c = B\, \mathbb{E}_p[\psi(t)], \qquad
        p(t) = \max\left(0, -\frac{(t - \mu)^2}{2 \sigma^2} - \lambda\right), \qquad
        \lambda = -\frac{1}{2} \left(\frac{3}{2 \sigma}\right)^{2/3}

    The support is mu ± a, a = (3 sigma^2 / 2)^{1/3}, and the variance of t is a^2 / 5, not sigma^2. B and psi are as in
    `ContinuousSoftmax`; the integrals of psi over the parabola are exact.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape, query (*batch, queries, query_dim) if `query_dim` is
        given -> a `Continuous` distribution over keys.

    Reference:
        Martins et al. (2020), arXiv:2006.07214.

    Args:
        query_dim: if given, mu and sigma2 are computed from the query by a linear layer, and only the shape of the
            scores is used; otherwise they are the mean and variance of the scores' softmax over positions.
        num_basis: the number of basis functions, with centres spread evenly over [0, 1].
        widths: the standard deviations s_n, the same number of each.
        ridge: the penalty of the regression that fits the values.
    """

    density = TruncatedParabola
