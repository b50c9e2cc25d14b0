"""Supervised attention: the attention learns to follow given links."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saccade.interpretation.alignments import Words, read_pharaoh
from saccade.losses import supervised_attention_loss


def link_pieces(alignment: str, source_words: Words, target_words: Words, *, shift: int = 0) -> list[int]:
    """Links between words, `0-0 1-2`, as links between all their pieces: source, target, source, target, ...

    The list is flat because Arrow stores and reads that fastest. Possible links, `1p2`, count as well. With a shift of
    1, the links of a piece belong to the next step, which for the last piece is the end.
    """
    problem = outside(alignment, len(source_words), len(target_words))
    if problem is not None:
        raise ValueError(f"{problem}.")
    pieces: list[int] = []
    for source, target in sorted(read_pharaoh(alignment).possible):
        for source_piece in source_words[source]:
            for target_piece in target_words[target]:
                pieces += (source_piece, target_piece + shift)
    return pieces


def outside(alignment: str, source_words: int, target_words: int) -> str | None:
    """The first link of an alignment to a word that does not exist; None if all of them fit."""
    for source, target in sorted(read_pharaoh(alignment).possible):
        for side, word, words in (("source", source, source_words), ("target", target, target_words)):
            if word >= words:
                counted = f"{words} word{'s' * (words != 1)}"
                return f"the alignment has the link {source}-{target}, but the {side} has {counted}"
    return None


def gold_matrix(links: Sequence[Sequence[int]], target: Tensor, source: Tensor) -> Tensor:
    """bool (batch, target, source): True where a target piece is linked to a source piece."""
    gold = torch.zeros(*target.shape, source.shape[1], dtype=torch.bool)
    for row, flat in enumerate(links):
        gold[row, list(flat[1::2]), list(flat[::2])] = True
    return gold


def attention_loss(model: nn.Module, weights: Tensor | None, gold: Tensor) -> Tensor:
    """The cross-entropy of attention and gold links, summed over the target pieces with links."""
    if weights is None:
        raise ValueError(
            f"alignment_weight needs a model with attention, but {type(model).__name__} has none: leave it at 0."
        )
    return supervised_attention_loss(weights, gold, reduction="sum")
