"""Structural alignment biases."""

from saccade.history import HistoryFeature, LocalFertility, Markov, PositionFeature
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("cohn")
class CohnScore(HistoryScore):
    r"""An additive score with the biases of word alignment models: position, Markov condition and local fertility.

    .. math:: s_{ij} = v^\top \tanh(W q_i + U k_j + W_b \psi_{ij} + W_m \xi^{(1)}_{ij} + W_f \xi^{(2)}_{ij})

    psi_ij = [log(1 + i); log(1 + j); log(1 + S)] with S attendable keys; xi1 are the previous step's weights at
    j - 1, j, j + 1, and xi2 the sums of all earlier weights at these positions.

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, section 3.2; the paper's j is our step i, its i our key j, its I our S.

    Args:
        query_dim, key_dim, hidden_dim: as in `AdditiveScore`.
        position, markov, fertility: which biases to use; at least one.
    """

    def __init__(
        self,
        *,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        position: bool = True,
        markov: bool = True,
        fertility: bool = True,
    ) -> None:
        features: list[HistoryFeature] = []
        if position:
            features.append(PositionFeature())
        if markov:
            features.append(Markov())
        if fertility:
            features.append(LocalFertility())
        super().__init__(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim, features=features, bias=False)
