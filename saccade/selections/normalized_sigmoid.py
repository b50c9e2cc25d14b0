"""Normalised sigmoid selection."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from saccade.distributions import Categorical, Distribution
from saccade.selections.base import Selection, selections
from saccade.selections.softmax import softmax


@selections.register("normalized_sigmoid")
class NormalizedSigmoid(Selection):
    r"""Smooths the weights: all high-scoring positions weigh about the same, so several frames are read at once.

    .. math:: p_j = \frac{\sigma(s_j)}{\sum_l \sigma(s_l)}

    Computed as the softmax of log-sigmoids, which avoids 0 / 0 for very low scores.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape -> a `Categorical` over keys.

    Reference:
        Chorowski et al. (2015), arXiv:1506.07503, section 2.3, "smoothing".
    """

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        logits = F.logsigmoid(scores.masked_fill(~mask, 0.0))
        return Categorical(softmax(logits, mask=mask), logits=logits, training=self.training)
