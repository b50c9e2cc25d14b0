"""Top-k selection."""

from typing import Any

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.distributions import Categorical, Distribution
from saccade.kernels.top_k import among_largest
from saccade.selections.base import Selection, selections
from saccade.selections.softmax import softmax


@selections.register("top_k")
class TopK(Selection):
    r"""Softmax over the k highest scores only.

    .. math:: p_j = \frac{\exp(s_j)}{\sum_{l \in K} \exp(s_l)} \quad \text{for } j \in K,
        \qquad K = \text{the } k \text{ highest scores}

    Ties go to the earlier key. With at most k attendable keys this is softmax.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Chorowski et al. (2015), arXiv:1506.07503, section 2.3.
    """

    def __init__(self, *, k: int = 8) -> None:
        super().__init__()
        check_count("k", k)
        self.k = k

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        kept = mask & among_largest(scores.masked_fill(~mask, -torch.inf), self.k)
        return Categorical(softmax(scores, mask=kept), logits=scores, training=self.training)
