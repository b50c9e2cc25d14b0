"""An output head for large vocabularies."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saccade.decoders.heads.base import OutputHead
from saccade.kernels.cross_entropy import CrossEntropy, cross_entropy


class AdaptiveHead(OutputHead):
    r"""Frequent words first: rare ones are reached through a few clusters, with fewer features each.

    .. math:: p(y) = p(c_y \mid x)\, p(y \mid c_y, x)

    The vocabulary must be ordered by frequency, as that of the tokenisers word and pretokenised is. The loss computes
    the clusters of its targets alone.

    Shapes:
        features (*, input_dim) -> logits (*, vocab_size), which are log-probabilities.

    Reference:
        Grave et al. (2017), arXiv:1609.04309.

    Args:
        cutoffs: the first word of each cluster, rising; the words before the first have no cluster.
        shrink: how many times fewer features each further cluster has.
    """

    def __init__(self, *, input_dim: int, vocab_size: int, cutoffs: Sequence[int], shrink: float = 4.0) -> None:
        super().__init__()
        rising = [*cutoffs] == sorted(set(cutoffs)) and len(cutoffs) > 0
        if not rising or not 0 < cutoffs[0] <= cutoffs[-1] < vocab_size:
            raise ValueError(
                f"cutoffs must rise from 1 or more to less than the {vocab_size:,} words of the vocabulary, got "
                f"{[*cutoffs]}."
            )
        if input_dim < shrink ** len(cutoffs):
            raise ValueError(
                f"{len(cutoffs)} clusters need {shrink ** len(cutoffs):g} features or more, got {input_dim}."
            )
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(input_dim, vocab_size, [*cutoffs], div_value=shrink)

    def logits(self, features: Tensor) -> Tensor:
        log_probs: Tensor = self.softmax.log_prob(features.flatten(0, -2))
        return log_probs.view(*features.shape[:-1], log_probs.shape[-1])

    def loss(self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0) -> CrossEntropy:
        if smoothing or not len(targets):
            return cross_entropy(self.logits(features), targets, smoothing=smoothing, first=first)
        total = -self.softmax(features, targets).output.sum()
        with torch.no_grad():
            right = (self.softmax.predict(features) == targets).sum()
        return CrossEntropy(total, right, total.detach())
