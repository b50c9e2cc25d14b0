"""Location-aware score."""

from saccade.history import ConvolvedWeights
from saccade.scores.base import scores
from saccade.scores.history import HistoryScore


@scores.register("location_aware")
class LocationAwareScore(HistoryScore):
    r"""An additive score that also sees the previous weights, through convolutional filters.

    .. math:: s_{ij} = v^\top \tanh(W q_i + V k_j + U f_{ij} + b), \qquad f_i = F * p_{i-1}

    Before the first step all weight is on the first attendable key.

    Shapes:
        query (*batch, 1, query_dim), one step at a time, keys (*batch, keys, key_dim) -> scores (*batch, 1, keys).

    Reference:
        Chorowski et al. (2015), arXiv:1506.07503, equations 8 and 9: q_i is s_{i-1}, k_j is h_j, v is w; F has
        k = `num_filters` filters of size r = `width`.
    """

    def __init__(
        self, *, query_dim: int, key_dim: int, hidden_dim: int, num_filters: int = 10, width: int = 201
    ) -> None:
        super().__init__(
            query_dim=query_dim,
            key_dim=key_dim,
            hidden_dim=hidden_dim,
            features=[ConvolvedWeights(num_filters=num_filters, width=width)],
        )
