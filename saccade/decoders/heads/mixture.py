"""An output head that mixes the predictions of all source positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.decoders.heads.base import OutputHead


class MixtureHead(OutputHead):
    r"""A linear head at each source position, mixed by the probability of each position.

    .. math:: \log p(y) = \log \sum_s p(a = s)\, \operatorname{softmax}(W x_s + b)_y

    Shapes:
        features (*, sources, input_dim + 1), the last feature being log p(a = s) -> logits (*, vocab_size), which are
        log-probabilities.

    Reference:
        Wu et al. (2018), arXiv:1808.10024, section 2.
    """

    def __init__(self, *, input_dim: int, vocab_size: int) -> None:
        super().__init__()
        self.proj = nn.Linear(input_dim, vocab_size)

    def logits(self, features: Tensor) -> Tensor:
        raw = self.proj(features[..., :-1].to(self.proj.weight.dtype))
        return self.mix(raw, features[..., -1] - raw.logsumexp(-1))

    @staticmethod
    def mix(raw: Tensor, weights: Tensor) -> Tensor:
        """Adds up exp(raw) (*, sources, vocab) times exp(weights) (*, sources) over sources, in log space."""
        return torch.logsumexp(raw + weights.unsqueeze(-1), -2)
