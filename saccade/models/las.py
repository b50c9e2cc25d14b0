"""Listen, attend and spell: speech recognition by a pyramidal encoder and attention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from torch import nn

from saccade.attention import Attention
from saccade.decoders import LearnedStart, LuongDecoder, ProjectSummary
from saccade.encoders import PyramidalEncoder
from saccade.layers import FeatureEmbedding, RecurrentStack, SpectrogramEmbedding, TokenEmbedding, initialisation
from saccade.layers.choices import make_score, make_selection
from saccade.layers.recurrent import CellName
from saccade.models.base import EncoderDecoder, models
from saccade.scores import Score
from saccade.selections import Selection


@models.register("las")
class ListenAttendSpell(EncoderDecoder):
    r"""A pyramidal listener, and a speller that attends to its states at each step and feeds back the context.

    .. math:: h = \mathrm{listen}(x), \quad s_i = \mathrm{LSTM}([e_{i-1}; c_{i-1}], s_{i-1}), \quad
        c_i = \mathrm{attention}(s_i, h), \quad p = \operatorname{softmax}(W_o \tanh(W [c_i; s_i]))

    In training, the previous token is sometimes drawn from the model itself (`sampling`), instead of always being the
    correct one. With `ctc_weight` the listener is also trained to write the text in order; see `saccade.decoders.CTC`.

    Shapes:
        source (batch, length, source_dim), source_mask bool (batch, length), target_in (batch, steps) -> features
        (batch, steps, hidden_dim). The paper: frames of 40 features, listener_dim 256, three pyramid layers, two layers
        of hidden_dim 512, sampling 0.1.

    Reference:
        Chan et al. (2015), arXiv:1508.01211.

    Args:
        source_vocab, source_dim: give exactly one: the number of source tokens, or the features of a frame.
        source_stride: how many frames the first layer reads as one; above 1 they are projected to listener_dim.
        source_filters: of two convolutions over time and frequency before the first layer, which then reads every four
            frames as one; 0, as in the paper, has none.
        listener_dim: features of one direction of the listener.
        pyramid: for each layer of the listener above the first, how many states below become one; 1 keeps their number.
        hidden_dim, num_layers: of the speller.
        alignment_dim: of the score's networks; hidden_dim by default.
        score, selection: the score and selection of the attention, each a short name or an instance; mlp_dot and
            softmax in the paper.
        start: the speller starts from a learned state ("learned"), or from what the listener heard last ("summary").
        sampling: how often training feeds a token drawn from the model.
        ctc_weight: how much CTC counts in training, from 0 to less than 1.
        dropout: applied to embeddings, between layers, and to features.
        paper_start: initialises all weights from U(-0.1, 0.1).
    """

    def __init__(
        self,
        *,
        source_vocab: int | None = None,
        source_dim: int | None = None,
        source_stride: int = 1,
        source_filters: int = 0,
        target_vocab: int,
        embedding_dim: int = 64,
        listener_dim: int = 128,
        pyramid: Sequence[int] = (2, 2, 2),
        hidden_dim: int = 256,
        num_layers: int = 2,
        alignment_dim: int | None = None,
        score: str | Score | partial[Score] = "mlp_dot",
        selection: str | Selection | partial[Selection] = "softmax",
        cell: CellName = "lstm",
        start: Literal["learned", "summary"] = "learned",
        sampling: float = 0.1,
        ctc_weight: float = 0.0,
        dropout: float = 0.0,
        max_length: int = 2048,
        paper_start: bool = False,
    ) -> None:
        if (source_vocab is None) == (source_dim is None):
            raise ValueError(
                f"Pass either source_vocab, for token ids, or source_dim, for frames; got source_vocab={source_vocab} "
                f"and source_dim={source_dim}."
            )
        if start not in ("learned", "summary"):
            raise ValueError(f"start must be 'learned' or 'summary', got {start!r}.")
        if source_filters and (source_dim is None or source_stride > 1):
            raise ValueError(
                f"source_filters={source_filters} is for frames, instead of source_stride; got source_dim={source_dim} "
                f"and source_stride={source_stride}."
            )
        embedding: nn.Module | None = None
        input_dim = source_dim or listener_dim
        if source_vocab is not None:
            embedding = TokenEmbedding(vocab_size=source_vocab, dim=listener_dim, dropout=dropout)
        elif source_filters:
            embedding = SpectrogramEmbedding(
                input_dim=input_dim, filters=source_filters, dim=listener_dim, dropout=dropout
            )
            input_dim = listener_dim
        elif source_dim is not None and source_stride > 1:
            embedding = FeatureEmbedding(input_dim=source_dim, dim=listener_dim, stride=source_stride, dropout=dropout)
            input_dim = listener_dim
        encoder = PyramidalEncoder(
            embedding=embedding,
            input_dim=input_dim,
            hidden_dim=listener_dim,
            factors=pyramid,
            cell=cell,
            dropout=dropout,
        )
        stack = RecurrentStack(
            input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=num_layers, cell=cell, dropout=dropout
        )
        sizes = {
            "query_dim": hidden_dim,
            "key_dim": encoder.output_dim,
            "hidden_dim": alignment_dim or hidden_dim,
            "max_keys": max_length,
        }
        shape: dict[str, Any] = {"hidden_dim": hidden_dim, "num_layers": num_layers, "num_states": stack.num_states}
        bridge: nn.Module = LearnedStart(**shape)
        if start == "summary":
            bridge = ProjectSummary(summary_dim=encoder.summary_dim, **shape)
        decoder = LuongDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            stack=stack,
            attention=Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes)),
            bridge=bridge,
            context_dim=encoder.output_dim,
            feeds="context",
            sampling=sampling,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder, ctc_weight=ctc_weight)
        if paper_start:
            initialisation.uniform(self, 0.1)
