"""Total attention around each key."""

from typing import NamedTuple

from torch import Tensor

from saccade.history.base import HistoryFeature, features, summing_dtype
from saccade.history.neighbours import neighbours


class TotalWeights(NamedTuple):
    """total (*batch, 1, keys) of the weights so far."""

    total: Tensor


@features.register("local_fertility")
class LocalFertility(HistoryFeature):
    r"""The sums of all earlier weights around each key.

    .. math:: \xi_{ij} = \sum_{i' < i} [p_{i',j-1}; p_{i',j}; p_{i',j+1}]

    Shapes:
        weights (*batch, 1, keys) at each step -> features (*batch, keys, 3).

    Reference:
        Cohn et al. (2016), arXiv:1601.01085, section 3.2, "local fertility"; the paper's j is our step i, its i our
        key j.
    """

    feature_dim: int = 3

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> TotalWeights:
        shape = (*prepared.shape[:-2], 1, prepared.shape[-2])
        return TotalWeights(prepared.new_zeros(shape, dtype=summing_dtype(prepared)))

    def features(self, state: TotalWeights, query: Tensor, prepared: Tensor) -> Tensor:
        return neighbours(state.total.to(prepared.dtype))

    def advance(self, state: TotalWeights, weights: Tensor, query: Tensor, prepared: Tensor) -> TotalWeights:
        return TotalWeights(state.total + weights)
