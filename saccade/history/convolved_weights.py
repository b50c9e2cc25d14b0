"""Convolutions of the previous weights."""

from typing import NamedTuple

from torch import Tensor, nn

from saccade.checks import check_count
from saccade.history.base import HistoryFeature, attendable, features


class PreviousWeights(NamedTuple):
    """weights (*batch, 1, keys) of the previous step."""

    weights: Tensor


@features.register("convolved_weights")
class ConvolvedWeights(HistoryFeature):
    r"""Convolutional filters over the previous step's weights, so that attention can move on from there.

    .. math:: f_i = F * p_{i-1}

    Before the first step all weight is on the first attendable key.

    Shapes:
        weights (*batch, 1, keys) at each step -> features (*batch, keys, num_filters).

    Reference:
        Chorowski et al. (2015), arXiv:1506.07503, equation 8: F has k = `num_filters` filters of size r = `width`;
        zero-padded.
    """

    def __init__(self, *, num_filters: int = 10, width: int = 201) -> None:
        super().__init__()
        check_count("num_filters", num_filters)
        if width < 1 or width % 2 == 0:
            raise ValueError(f"width must be an odd number, got {width}: the filter is centred on the key.")
        self.feature_dim = num_filters
        self.conv = nn.Conv1d(1, num_filters, width, padding=width // 2, bias=False)

    def begin(self, query: Tensor, prepared: Tensor, mask: Tensor | None = None) -> PreviousWeights:
        may = attendable(prepared, mask)
        first = may & (may.cumsum(-1) == 1)
        return PreviousWeights(first.to(prepared.dtype).unsqueeze(-2))

    def features(self, state: PreviousWeights, query: Tensor, prepared: Tensor) -> Tensor:
        batch, keys = state.weights.shape[:-2], state.weights.shape[-1]
        if keys == 0:
            return state.weights.new_zeros(*batch, 0, self.feature_dim)
        convolved: Tensor = self.conv(state.weights.reshape(-1, 1, keys))
        return convolved.view(*batch, self.feature_dim, keys).transpose(-1, -2)

    def advance(self, state: PreviousWeights, weights: Tensor, query: Tensor, prepared: Tensor) -> PreviousWeights:
        return PreviousWeights(weights)
