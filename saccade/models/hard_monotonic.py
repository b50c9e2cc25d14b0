"""Exact hard attention, monotonic or unconstrained."""

from __future__ import annotations

from functools import partial
from typing import Literal

from saccade.decoders import FreeTransitions, MonotonicTransitions, MoveTransitions, Transitions
from saccade.layers.choices import make_score
from saccade.layers.recurrent import CellName
from saccade.models.aligned import AlignedModel, context_dim
from saccade.models.base import models
from saccade.scores import Score


@models.register("hard_monotonic")
class HardMonotonic(AlignedModel):
    """Each word comes from one source position, never moving back; all alignments are summed exactly.

    Order 0 (0-MONO) chooses among the remaining positions by score; order 1 (1-MONO) moves forward by a number of
    positions that depends on the last one; without an order (0-HARD) every word may come from any position.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps) -> features (batch, steps,
        length, hidden_dim + 1). The paper: embedding_dim 200, hidden_dim 400, two encoder layers, dropout 0.4.

    Reference:
        Wu and Cotterell (2019), arXiv:1905.06319; without an order: Wu et al. (2018), arXiv:1808.10024.

    Args:
        order: 1, 0, or None.
        width: for order 1: each step moves forward by fewer positions than this.
        score: for order 0 and None: compares the decoder state with a source position; a short name or an instance.
        online: for order 1: reads and writes from left to right. The encoder reads forwards only, the decoder gets no
            summary, and evaluation moves to one position at a time.
        dropout: applied to embeddings, between layers, and to the decoder states.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        encoder_layers: int = 2,
        decoder_layers: int = 1,
        order: Literal[0, 1] | None = 1,
        width: int = 5,
        score: str | Score | partial[Score] = "bilinear",
        cell: CellName = "lstm",
        online: bool = False,
        dropout: float = 0.0,
    ) -> None:
        if order not in (0, 1, None):
            raise ValueError(f"order must be 0, 1 or None, got {order!r}.")
        if online and order != 1:
            raise ValueError(f"online=True needs order=1: order={order} compares all remaining positions.")
        sizes = {"query_dim": hidden_dim, "key_dim": context_dim(hidden_dim, online)}
        transitions: Transitions
        if order == 1:
            transitions = MoveTransitions(**sizes, width=width)
        else:
            kind = FreeTransitions if order is None else MonotonicTransitions
            transitions = kind(score=make_score(score, **sizes, hidden_dim=hidden_dim))
        super().__init__(
            source_vocab=source_vocab,
            target_vocab=target_vocab,
            embedding_dim=embedding_dim,
            hidden_dim=hidden_dim,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            transitions=transitions,
            cell=cell,
            online=online,
            dropout=dropout,
        )
