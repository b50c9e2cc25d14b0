"""Ways to say a word of the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.decoders.heads.base import Cues
from saccade.decoders.heads.ways import Entries, Way


class CopyAttended(Way):
    r"""Copies the word that the decoder looks at.

    .. math:: p_j = a_j

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 9.
    """

    copies = True

    def forward(self, cues: Cues) -> Entries:
        return Entries(log_weights(cues.weights), words_of(cues))


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

    def score(self, state: Tensor, prepared: Tensor, mask: Tensor) -> Tensor:
        """Scores (*, keys) of state (*, state_dim) and prepared (*, keys, state_dim), -inf where masked."""
        scores = (prepared @ state.unsqueeze(-1)).squeeze(-1)
        return scores.masked_fill(~mask, -torch.inf)

    def forward(self, cues: Cues) -> Entries:
        return Entries(self.score(cues.state, self.prepare(cues.keys), cues.mask), words_of(cues))


def words_of(cues: Cues) -> Tensor:
    """What each position of the source says."""
    if cues.words is None:
        raise ValueError("This model copies words of the source, and was not told them: set task.copying to yes.")
    return cues.words


def log_weights(weights: Tensor) -> Tensor:
    """The logarithm of weights, -inf for those of zero, without a gradient there."""
    some = weights > 0
    return torch.where(some, torch.where(some, weights, 1.0).log(), -torch.inf)
