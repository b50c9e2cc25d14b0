"""Dropout that stays the same along a text."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def locked_dropout(states: Tensor, share: float, training: bool) -> Tensor:
    """Drops the same features of (batch, length, dim) at all positions of a text.

    Reference:
        Gal and Ghahramani (2016), arXiv:1512.05287; Merity et al. (2018), arXiv:1708.02182, section 4.2.
    """
    if not training or not share:
        return states
    return states * F.dropout(states.new_ones(len(states), 1, states.shape[-1]), share)


def drop_words(embedded: Tensor, tokens: Tensor, vocab: int, share: float, training: bool) -> Tensor:
    """Drops all occurrences of some words in a batch: embedded (batch, length, dim), tokens (batch, length).

    Reference:
        Gal and Ghahramani (2016), arXiv:1512.05287; Merity et al. (2018), arXiv:1708.02182, section 4.3.
    """
    if not training or not share:
        return embedded
    kept = F.dropout(embedded.new_ones(vocab), share)
    return embedded * kept[tokens].unsqueeze(-1)
