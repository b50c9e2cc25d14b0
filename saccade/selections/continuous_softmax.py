"""Continuous softmax."""

from saccade.distributions import Gaussian
from saccade.selections.base import selections
from saccade.selections.continuous import ContinuousSelection


@selections.register("continuous_softmax")
class ContinuousSoftmax(ContinuousSelection):
    r"""Reads the values as a continuous function of t in [0, 1] under a Gaussian density.

    .. math:: c = B\, \mathbb{E}_p[\psi(t)], \qquad p = \mathcal{N}(\mu, \sigma^2), \qquad
        \mathbb{E}_p[\psi_n] = \mathcal{N}(\mu; m_n, \sigma^2 + s_n^2)

    The basis functions are psi_n(t) = N(t; m_n, s_n^2). B = H F^T (F F^T + r I)^{-1} fits the values H at
    t_l = (l - 1/2) / S, with F_nl = psi_n(t_l), r the `ridge` and S the number of the row's attendable keys. So the
    context is linear in the values, with coefficients `selection.coefficients`. `selection.marginals` is the mass on
    each key's cell; mass outside [0, 1] picks nothing.

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

    density = Gaussian
