"""Attention between words, from attention between pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from saccade.registry import nearest

Words = Sequence[Sequence[int]]
"""The positions of each word's pieces, as returned by `Tokeniser.words`."""

Sink = Literal["drop", "redistribute"]


def merge_words(weights: Tensor, source_words: Words, target_words: Words, *, sink: Sink = "drop") -> Tensor:
    r"""Attention between words: summed over the pieces of a source word, averaged over those of a target word.

    .. math:: w_{ij} = \frac{1}{|t_i|} \sum_{p \in t_i} \sum_{q \in s_j} a_{pq}

    Weight outside the words (on the end of the sentence, where models often attend when they need nothing from the
    source, or on spaces, if they are pieces) is dropped, so that rows sum to less, or redistributed over the words in
    proportion to their weights. A row without weight on any word is zero either way, since it is not an alignment. To
    show a special token, pass it as a separate word: `[*words, [len(ids) - 1]]`.

    Shapes:
        weights (*batch, target pieces, source pieces) -> (*batch, target words, source words).

    Reference:
        Koehn & Knowles (2017), arXiv:1706.03872, section 3.5.

    Args:
        weights: the attention of each target piece to each source piece.
        source_words: the positions of each source word's pieces.
        target_words: the same for the target.
        sink: "drop" or "redistribute" the weight that is not on any source word.
    """
    if sink not in ("drop", "redistribute"):
        raise ValueError(f"Unknown sink {sink!r}.{nearest(sink, ('drop', 'redistribute'))}")
    if weights.dim() < 2:
        raise ValueError(f"weights must be (*batch, target pieces, source pieces), got {tuple(weights.shape)}.")
    members = _membership(source_words, weights, -1, "source")
    averages = _membership(target_words, weights, -2, "target")
    averages = averages / averages.sum(dim=-1, keepdim=True).clamp(min=1)
    rows = averages @ weights
    merged = rows @ members.T
    if sink == "redistribute":
        left = merged.sum(dim=-1, keepdim=True)
        merged = torch.where(left > 0, merged * rows.sum(dim=-1, keepdim=True) / left.where(left > 0, 1), 0)
    return merged


def _membership(words: Words, weights: Tensor, dim: int, side: str) -> Tensor:
    """(words, pieces): 1 where a piece belongs to a word."""
    pieces = weights.shape[dim]
    members = weights.new_zeros(len(words), pieces)
    for number, word in enumerate(words):
        for place in word:
            if not 0 <= place < pieces:
                raise ValueError(
                    f"{side} word {number} has a piece {place}, but weights {tuple(weights.shape)} have {pieces} "
                    f"{side} pieces, counted from 0."
                )
            members[number, place] = 1
    return members
