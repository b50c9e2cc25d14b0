"""Semi-Markov selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.aggregations import Aggregation, RenormalizedMean
from saccade.checks import check_count
from saccade.distributions import Distribution
from saccade.distributions.segments import SegmentSet
from saccade.selections.base import Selection, selections


@selections.register("semi_markov")
class SemiMarkov(Selection):
    r"""Picks segments of at most L keys, scored by length and separated by at least one key.

    .. math:: p(z) \propto \exp \sum_{\text{segments } i..i+l-1} \Big(d_l + \sum_{j=i}^{i+l-1} s_j\Big), \qquad l \le L

    d_l is learned. The weights are p(z_j = 1), the probability that j is in a segment; the default aggregation is the
    mean under them. Masked keys are removed: the keys on either side become neighbours.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `SegmentSet`, one for each query.

    Reference:
        Sarawagi and Cohen (2004), "Semi-Markov Conditional Random Fields for Information Extraction".

    Args:
        longest: L, the length of the longest segment.
        learn_durations: whether d is a parameter; it starts at zero.
    """

    def __init__(self, *, longest: int, learn_durations: bool = True) -> None:
        super().__init__()
        check_count("longest", longest)
        self.longest = longest
        self.durations = nn.Parameter(torch.zeros(longest), requires_grad=learn_durations)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        return SegmentSet.of(scores, self.durations, mask, training=self.training)

    def default_aggregation(self) -> Aggregation:
        return RenormalizedMean()
