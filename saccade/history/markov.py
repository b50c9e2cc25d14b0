"""Previous attention around each key."""

from torch import Tensor

from saccade.history.base import HistoryFeature, features
from saccade.history.convolved_weights import PreviousWeights
from saccade.history.neighbours import neighbours


@features.register("markov")
class Markov(HistoryFeature):
    r"""The previous step's weights around each key.

    .. math:: \xi_{ij} = [p_{i-1,j-1}; p_{i-1,j}; p_{i-1,j+1}], \qquad p_0 = 0

    Shapes:
        weights (*batch, 1, keys) at each step -> features (*batch, keys, 3).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, section 3.2, "Markov condition"; the paper's j is our step i, its i our
        key j.
    """

    feature_dim: int = 3

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> PreviousWeights:
        return PreviousWeights(prepared.new_zeros(*prepared.shape[:-2], 1, prepared.shape[-2]))

    def features(self, state: PreviousWeights, query: Tensor, prepared: Tensor) -> Tensor:
        return neighbours(state.weights)

    def advance(self, state: PreviousWeights, weights: Tensor, query: Tensor, prepared: Tensor) -> PreviousWeights:
        return PreviousWeights(weights)
