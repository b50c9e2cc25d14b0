"""Entmax-1.5 selection."""

from typing import Any

from torch import Tensor

from saccade.distributions import Categorical, Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.sparsemax import normalise_along


def entmax15(scores: Tensor, dim: int = -1, mask: Tensor | None = None) -> Tensor:
    """Halfway between softmax and sparsemax along `dim`; see `Entmax15`.

    Entries where `mask` (bool, broadcastable to the scores) is False get zero, and fully masked rows are zero.
    """
    return normalise_along(dim, scores, mask, "entmax15")


@selections.register("entmax15")
class Entmax15(Selection):
    r"""Halfway between softmax and sparsemax: sparse, but smoother at the edge of the support.

    .. math:: p_j = \max(s_j / 2 - \tau, 0)^2

    where the threshold tau makes the weights sum to one.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Peters et al. (2019), arXiv:1905.05702; scores are z there.
    """

    segment_mapping = "entmax15"

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Categorical(entmax15(scores, mask=mask), training=self.training)
