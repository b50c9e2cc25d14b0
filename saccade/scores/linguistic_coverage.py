"""Linguistic coverage score."""

from saccade.history import LinguisticCoverage
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("linguistic_coverage")
class LinguisticCoverageScore(HistoryScore):
    r"""An additive score that also sees how much of each key's fertility is used up.

    .. math:: s_{ij} = v^\top \tanh(W q_i + U k_j + V C_{i-1,j}), \qquad
        C_{ij} = C_{i-1,j} + \frac{p_{ij}}{\Phi_j}, \qquad \Phi_j = N\, \sigma(U_f k_j)

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Tu et al. (2016), arXiv:1601.04811, section 3.1.1: k_j is h_j; N is `max_fertility`. Phi is held at 0.05 or
        above.
    """

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int, max_fertility: float = 2.0) -> None:
        super().__init__(
            query_dim=query_dim,
            key_dim=key_dim,
            hidden_dim=hidden_dim,
            features=[LinguisticCoverage(key_dim=key_dim, max_fertility=max_fertility)],
            bias=False,
        )
