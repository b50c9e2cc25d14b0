"""Neural coverage score."""

from saccade.history import NeuralCoverage
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("neural_coverage")
class NeuralCoverageScore(HistoryScore):
    r"""An additive score that also sees a coverage vector per key, updated by a gated recurrent unit.

    .. math:: s_{ij} = v^\top \tanh(W q_i + U k_j + V C_{i-1,j}), \qquad
        C_{ij} = \mathrm{GRU}(C_{i-1,j};\, [p_{ij}, k_j, q_i])

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Tu et al. (2016), arXiv:1601.04811, section 3.1.2: k_j is h_j, q_i is t_{i-1}; C has `feature_dim` features.
    """

    def __init__(self, *, query_dim: int, key_dim: int, hidden_dim: int, feature_dim: int = 10) -> None:
        super().__init__(
            query_dim=query_dim,
            key_dim=key_dim,
            hidden_dim=hidden_dim,
            features=[NeuralCoverage(query_dim=query_dim, key_dim=key_dim, feature_dim=feature_dim)],
            bias=False,
        )
