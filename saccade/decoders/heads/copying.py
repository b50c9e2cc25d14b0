"""Ways to copy a word from the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.decoders.heads.base import Cues, Entries
from saccade.decoders.heads.ways import Way

LEAST = 1e-10
"""The minimum weight of a position that may be copied."""


class CopyAttended(Way):
    r"""Copies the word that the decoder attends to.

    .. math:: p_j = a_j

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 9.
    """

    copies = True

    def forward(self, cues: Cues) -> Entries:
        # A sparse selection leaves zeros. A word that can only be copied must stay possible, or its loss is infinite.
        floored = cues.weights.clamp(min=LEAST).masked_fill(~cues.source.mask.unsqueeze(-2), 0.0)
        return Entries(log_weights(floored), copied_words(cues))


class CopyScored(Way):
    r"""Scores each position of the source by the decoder's state.

    .. math:: \psi_c(j) = \tanh(h_j^\top W_c) \, s_t

    Reference:
        Gu et al. (2016), arXiv:1603.06393, equation 8.

    Args:
        key_dim: features of the encoder's states.
        state_dim: features of the decoder's state.
    """

    copies = True

    def __init__(self, *, key_dim: int, state_dim: int) -> None:
        super().__init__()
        self.key_proj = nn.Linear(key_dim, state_dim)
        nn.init.xavier_uniform_(self.key_proj.weight)
        nn.init.zeros_(self.key_proj.bias)

    def prepare(self, keys: Tensor) -> Tensor:
        """The half that does not depend on the decoder's state: (*, keys, state_dim)."""
        return torch.tanh(self.key_proj(keys))

    @staticmethod
    def score(state: Tensor, prepared: Tensor, mask: Tensor) -> Tensor:
        """Scores (batch, steps, keys) of states (batch, steps, state_dim), -inf where masked (batch, keys)."""
        return (state @ prepared.transpose(-1, -2)).masked_fill(~mask.unsqueeze(-2), -torch.inf)

    def forward(self, cues: Cues) -> Entries:
        return Entries(self.score(cues.state, self.prepare(cues.keys), cues.source.mask), copied_words(cues))


def copied_words(cues: Cues) -> Tensor:
    """(batch, steps, keys): the word at each position of the source."""
    if cues.source.words is None:
        raise ValueError("This model copies words of the source, but did not get them: set task.copying to yes.")
    return cues.source.words.unsqueeze(1).expand(cues.weights.shape)


def log_weights(weights: Tensor) -> Tensor:
    """The logarithm of weights, -inf for those of zero, without a gradient there."""
    some = weights > 0
    return torch.where(some, torch.where(some, weights, 1.0).log(), -torch.inf)
