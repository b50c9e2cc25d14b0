"""The head of the pointer-generator."""

from __future__ import annotations

from torch import nn

from saccade.decoders.heads.base import heads
from saccade.decoders.heads.blends import Gate
from saccade.decoders.heads.copying import CopyAttended
from saccade.decoders.heads.linear import LinearHead
from saccade.decoders.heads.ways import WaysHead


@heads.register("pointer_generator")
class PointerGeneratorHead(WaysHead):
    r"""Generates a word, or copies the one that the decoder attends to; a gate decides.

    .. math:: p(y) = p_{gen} P_{vocab}(y) + (1 - p_{gen}) \sum_{j : x_j = y} a_j, \qquad
        p_{gen} = \sigma(w_c^\top c_t + w_s^\top s_t + w_x^\top x_t + b)

    Shapes:
        features (batch, steps, input_dim) with their `Cues` -> log-probabilities (batch, steps, vocab_size + keys).

    Reference:
        See et al. (2017), arXiv:1704.04368, equations 8 and 9; c is h*, and x_t the embedding of the previous word.

    Args:
        input_dim: features of the vocabulary's softmax.
        state_dim, context_dim, embedding_dim: features of the decoder's state, of what it read and of its input.
        tied_to: embedding weights (vocab_size, input_dim) that are also the vocabulary's.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        vocab_size: int,
        state_dim: int,
        context_dim: int,
        embedding_dim: int,
        tied_to: nn.Parameter | None = None,
    ) -> None:
        super().__init__(
            generate=LinearHead(input_dim=input_dim, vocab_size=vocab_size, tied_to=tied_to),
            blend=Gate(cue_dim=context_dim + state_dim + embedding_dim),
            vocab_size=vocab_size,
            ways={"copy": CopyAttended()},
        )
