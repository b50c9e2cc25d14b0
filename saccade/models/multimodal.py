"""Multimodal translation: image vectors read among the words of a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import nn

from saccade.attention import Attention
from saccade.decoders import CopyStates, LuongDecoder
from saccade.encoders import RecurrentEncoder, WithVectorsEncoder
from saccade.encoders.vectors import PlaceName, VectorsName
from saccade.layers import FeatureEmbedding, RecurrentStack, TokenEmbedding
from saccade.layers.choices import make_score, make_selection
from saccade.layers.recurrent import CellName
from saccade.models.base import EncoderDecoder, models
from saccade.models.sources import Sizes, all_sizes
from saccade.scores import Score
from saccade.selections import Selection


@models.register("multimodal")
class Multimodal(EncoderDecoder):
    """An LSTM reads a text with image vectors as additional words, and a Luong decoder attends to all of them.

    The paper's three models are `vectors: global` (m1), `vectors: both` (m2) and `vectors: both, threads: true` (m3).
    See `WithVectorsEncoder` for the equations. A text without pictures is read on its own.

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps), vectors (batch, regions,
        dim) and mask of each picture -> features (batch, steps, hidden_dim).

    Reference:
        Huang et al. (2016), "Attention-based multimodal neural machine translation" (WMT), section 3.

    Args:
        source_vocab: the number of tokens of the text.
        other_sources: the sizes of the vectors of each picture, as `{dim: 48}`.
        vectors: what is read of a picture: "regions", "global" (their mean) or "both".
        place: whether vectors come before the text ("head") or after it ("tail").
        threads: whether each vector is read with the text in a thread of its own; all threads share their weights.
        score, selection: the score and selection of the attention, each a short name or an instance.
        max_source_length: the number of positions that "location" scores; it ignores those beyond.
        bidirectional: reads in both directions, each with half the units.
        dropout: applied to embeddings, between layers, and to features.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        other_sources: Sequence[Sizes] = (),
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        num_layers: int = 1,
        vectors: VectorsName = "both",
        place: PlaceName = "head",
        threads: bool = False,
        score: str | Score | partial[Score] = "general",
        selection: str | Selection | partial[Selection] = "softmax",
        half_width: int = 10,
        max_source_length: int = 512,
        input_feeding: bool = True,
        cell: CellName = "lstm",
        bidirectional: bool = True,
        dropout: float = 0.0,
    ) -> None:
        pictures = all_sizes(source_vocab, None, other_sources)[1:]
        if any("dim" not in sizes for sizes in pictures):
            raise ValueError("multimodal reads one text and the vectors of pictures: for two texts, use multi_source.")
        if bidirectional and hidden_dim % 2:
            raise ValueError(f"bidirectional=True halves hidden_dim, which must be even, got {hidden_dim}.")
        encoder = WithVectorsEncoder(
            embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
            vectors=[FeatureEmbedding(input_dim=s["dim"], dim=embedding_dim, dropout=dropout) for s in pictures],
            network=RecurrentEncoder(
                embedding=nn.Identity(),
                input_dim=embedding_dim,
                hidden_dim=hidden_dim // 2 if bidirectional else hidden_dim,
                num_layers=num_layers,
                cell=cell,
                bidirectional=bidirectional,
                dropout=dropout,
            ),
            read=vectors,
            place=place,
            threads=threads,
        )
        sizes = {
            "query_dim": hidden_dim,
            "key_dim": hidden_dim,
            "hidden_dim": hidden_dim,
            "max_keys": max_source_length,
            "half_width": half_width,
        }
        decoder = LuongDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=RecurrentStack(
                input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=num_layers, cell=cell, dropout=dropout
            ),
            attention=Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes)),
            bridge=CopyStates(),
            context_dim=hidden_dim,
            input_feeding=input_feeding,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
