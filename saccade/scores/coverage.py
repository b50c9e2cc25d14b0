"""Coverage score."""

from saccade.history import Coverage
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("coverage")
class CoverageScore(HistoryScore):
    r"""An additive score that also sees how much attention each key has received so far.

    .. math:: s_{ij} = v^\top \tanh(W_s q_i + W_h k_j + w_c c_{ij} + b), \qquad c_{ij} = \sum_{i' < i} p_{i'j}

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        See et al. (2017), arXiv:1704.04368, equations 10 and 11: q_i is s_t, k_j is h_i.
    """

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim, features=[Coverage()])
