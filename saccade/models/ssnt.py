"""Segment to segment neural transduction."""

from __future__ import annotations

from functools import partial

from saccade.decoders import ShiftTransitions
from saccade.layers.choices import make_score
from saccade.layers.recurrent import CellName
from saccade.models.aligned import AlignedModel, context_dim
from saccade.models.base import models
from saccade.scores import Score


@models.register("ssnt")
class SegmentToSegment(AlignedModel):
    """Reads from left to right, emitting a word or moving on at each position; sums exactly over all alignments.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps) -> features (batch, steps,
        length, hidden_dim + 1).

    Reference:
        Yu et al. (2016), arXiv:1609.08194; its RNN is an LSTM.

    Args:
        score: compares the decoder state with a source position; above 0 where emitting is more likely than reading on.
        online: reads and writes at the same time. The encoder reads forwards only, the decoder gets no summary, and
            evaluation emits at the first position with a score above 0; otherwise the encoder reads in both directions
            and the search sums over all positions.
        dropout: applied to embeddings, between layers, and to the decoder states.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        encoder_layers: int = 1,
        decoder_layers: int = 1,
        score: str | Score | partial[Score] = "additive",
        cell: CellName = "lstm",
        online: bool = True,
        dropout: float = 0.0,
    ) -> None:
        sizes = {"query_dim": hidden_dim, "key_dim": context_dim(hidden_dim, online), "hidden_dim": hidden_dim}
        super().__init__(
            source_vocab=source_vocab,
            target_vocab=target_vocab,
            embedding_dim=embedding_dim,
            hidden_dim=hidden_dim,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            transitions=ShiftTransitions(score=make_score(score, **sizes)),
            cell=cell,
            online=online,
            dropout=dropout,
        )
