"""Coverage: how much attention each key has received so far."""

from typing import NamedTuple

from torch import Tensor

from saccade.history.base import HistoryFeature, features, summing_dtype


class CoverageState(NamedTuple):
    """coverage (*batch, keys, feature_dim)."""

    coverage: Tensor


@features.register("coverage")
class Coverage(HistoryFeature):
    r"""The sum of the weights of all earlier steps.

    .. math:: c_{ij} = \sum_{i' < i} p_{i'j}

    Shapes:
        weights (*batch, 1, keys) at each step -> features (*batch, keys, 1).

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 10.
    """

    feature_dim: int = 1

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> CoverageState:
        return CoverageState(prepared.new_zeros(*prepared.shape[:-1], 1, dtype=summing_dtype(prepared)))

    def features(self, state: CoverageState, query: Tensor, prepared: Tensor) -> Tensor:
        return state.coverage.to(prepared.dtype)

    def advance(self, state: CoverageState, weights: Tensor, query: Tensor, prepared: Tensor) -> CoverageState:
        return CoverageState(state.coverage + weights.transpose(-1, -2))
