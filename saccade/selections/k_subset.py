"""k-subset selection."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.aggregations import Aggregation, RenormalizedMean
from saccade.checks import check_count
from saccade.distributions import Distribution
from saccade.distributions.subset import Subset
from saccade.selections.base import Selection, selections


@selections.register("k_subset")
class KSubset(Selection):
    r"""Picks exactly k keys.

    .. math:: p(z) \propto \exp \sum_j s_j z_j, \qquad \sum_j z_j = k

    With fewer than k attendable keys, all of them are picked. The weights sum to k; the default aggregation is the
    mean under them. With k = 1 this is softmax.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Subset`, one for each query.

    Reference:
        Kim et al. (2017), arXiv:1702.00887, for marginals as attention; Swersky et al. (2012), "Cardinality Restricted
        Boltzmann Machines", for the recursion.

    Args:
        k: how many keys to pick.
    """

    def __init__(self, *, k: int) -> None:
        super().__init__()
        check_count("k", k)
        self.k = k

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return Subset.of(scores, self.k, mask, training=self.training)

    def default_aggregation(self) -> Aggregation:
        return RenormalizedMean()
