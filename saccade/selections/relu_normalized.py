"""ReLU-normalised selection."""

from typing import Any

import torch
from torch import Tensor

from saccade.distributions import Categorical, Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.previous import working_dtype


@selections.register("relu_normalized")
class ReLUNormalized(Selection):
    r"""Weights positions in proportion to the positive part of their scores.

    .. math:: p_j = \frac{\max(s_j, 0)}{\sum_l \max(s_l, 0)}

    A row with no positive score picks nothing: its weights are zero, like those of a row with no attendable keys. For
    scores that are never negative, such as kernels, this normalises them by their sum.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        For kernel scores: Katharopoulos et al. (2020), arXiv:2006.16236.
    """

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        positive = torch.relu(scores.masked_fill(~mask, 0.0))
        total = positive.sum(-1, keepdim=True, dtype=working_dtype(scores))
        probs = (positive / torch.where(total > 0, total, 1.0)).to(scores.dtype)
        return Categorical(probs, training=self.training)
