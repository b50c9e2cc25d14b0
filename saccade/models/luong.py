"""Effective approaches to attention: global and local, with and without input feeding."""

from __future__ import annotations

from functools import partial

from torch import nn

from saccade.attention import Attention
from saccade.decoders import CopyStates, LuongDecoder, OutputHead, ProjectSummary
from saccade.encoders import Encoder, RecurrentEncoder
from saccade.layers import RecurrentStack, TokenEmbedding, initialisation
from saccade.layers.choices import make_score, make_selection
from saccade.layers.recurrent import CellName
from saccade.models.base import EncoderDecoder, models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("luong")
class Luong(EncoderDecoder):
    """A deep LSTM encoder and decoder whose top state attends to the source after each step.

    The paper's variants combine the score "dot", "general", "concat" or "location" with the selection "softmax"
    (global), "local_m" or "local_p".

    Shapes:
        source (batch, length), source_mask bool (batch, length), target_in (batch, steps)
        -> features (batch, steps, hidden_dim). The paper: four layers of 1000 units, embeddings of 1000, dropout 0.2.

    Reference:
        Luong et al. (2015), arXiv:1508.04025.

    Args:
        score, selection: the score and selection of the attention, each a short name or an instance; "general" is the
            paper's name for "bilinear".
        half_width: D, how far local attention sees on each side.
        max_source_length: the number of positions that "location" scores; it ignores those beyond.
        input_feeding: feeds the attentional vector to the next step; without it all steps are computed at once.
        bidirectional: reads the source in both directions, each with half the units; reversed: reads it backwards.
        head: how words are said: "linear" (from the vocabulary), "pointer_generator" or "copynet", which also copy
            words of the source, "lexicon", or any `OutputHead`.
        encoder: any other `Encoder`; the decoder then starts from its summary.
        dropout: applied to embeddings, between layers, and to features.
        paper_start: initialises all weights from U(-0.1, 0.1), for plain gradient descent.
    """

    def __init__(
        self,
        *,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        num_layers: int = 2,
        score: str | Score | partial[Score] = "general",
        selection: str | Selection | partial[Selection] = "softmax",
        half_width: int = 10,
        max_source_length: int = 128,
        input_feeding: bool = True,
        cell: CellName = "lstm",
        bidirectional: bool = False,
        reversed: bool = False,
        encoder: Encoder | None = None,
        head: str | OutputHead | partial[OutputHead] = "linear",
        dropout: float = 0.0,
        paper_start: bool = False,
    ) -> None:
        if bidirectional and hidden_dim % 2:
            raise ValueError(f"bidirectional=True halves hidden_dim, which must be even, got {hidden_dim}.")
        stack = RecurrentStack(
            input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=num_layers, cell=cell, dropout=dropout
        )
        bridge: nn.Module = CopyStates()
        if encoder is None:
            encoder = RecurrentEncoder(
                embedding=TokenEmbedding(vocab_size=source_vocab, dim=embedding_dim, dropout=dropout),
                input_dim=embedding_dim,
                hidden_dim=hidden_dim // 2 if bidirectional else hidden_dim,
                num_layers=num_layers,
                cell=cell,
                bidirectional=bidirectional,
                reversed=reversed,
                dropout=dropout,
            )
        else:
            bridge = ProjectSummary(
                summary_dim=encoder.summary_dim,
                hidden_dim=hidden_dim,
                num_layers=num_layers,
                num_states=stack.num_states,
            )
        sizes = {
            "query_dim": hidden_dim,
            "key_dim": encoder.output_dim,
            "hidden_dim": hidden_dim,
            "max_keys": max_source_length,
            "half_width": half_width,
        }
        attention = Attention(
            score=make_score(score, **sizes),
            selection=make_selection(selection, **sizes),
        )
        decoder = LuongDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            attention=attention,
            bridge=bridge,
            context_dim=encoder.output_dim,
            input_feeding=input_feeding,
            head=head,
            source_vocab=source_vocab,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder)
        if paper_start:
            initialisation.uniform(self, 0.1)
