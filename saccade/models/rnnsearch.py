"""RNNsearch: jointly learning to align and translate."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from torch import nn

from saccade.attention import Attention
from saccade.decoders import LearnedStart, OutputHead, RNNSearchDecoder
from saccade.encoders import ConvolutionalEncoder, EmbeddingEncoder, Encoder, PyramidalEncoder, RecurrentEncoder
from saccade.layers import TokenEmbedding, initialisation
from saccade.layers.choices import make_score, make_selection
from saccade.models.base import EncoderDecoder, models
from saccade.models.picture_encoders import PICTURE_ENCODERS, PictureEncoderName, make_picture_encoder
from saccade.models.sources import embed_source
from saccade.registry import nearest
from saccade.scores import Score
from saccade.selections import Selection

EncoderName = Literal["birnn", "rnn", "pyramidal", "convolutional", "embedding"]


@models.register("rnnsearch")
class RNNSearch(EncoderDecoder):
    """A bidirectional recurrent encoder and a decoder that attends to its states before each step.

    Shapes:
        source (batch, length), or (batch, length, source_dim), source_mask bool (batch, length), target_in (batch,
        steps) -> features (batch, steps, maxout_dim). The paper: hidden_dim and alignment_dim 1000, embedding_dim 620,
        maxout_dim 500.

    Reference:
        Bahdanau et al. (2015), arXiv:1409.0473.

    Args:
        source_vocab, source_dim: give exactly one: the number of source tokens, or the size of the source's feature
            vectors.
        source_stride: how many feature vectors become one source position.
        encoder: "birnn" (the paper's), "rnn" (forwards only), "pyramidal" (of `encoder_layers` layers, each but the
            first halves the number of positions), "convolutional" (sees a window of neighbours), "embedding" (with
            positions, no context), for pictures "residual" or "patches", or any `Encoder`.
        score, selection: the score and selection of the attention, each a short name or an instance; additive and
            softmax in the paper.
        query: the query is the state before the step ("state", as in the paper), which has not seen the previous token,
            or that state and the previous token ("state_and_token"), which helps to choose where to attend next.
        cell: the gated unit resets before the recurrent product ("paper") or after it ("fast"): see `GRUCell`.
        readout_state: the readout sees the state before the step ("previous", as in the paper) or after it ("current").
        head: how words are said: "linear" (from the vocabulary), "pointer_generator" or "copynet", which also copy
            words of the source, "lexicon", or any `OutputHead`.
        online: reads and writes from left to right: the encoder reads forwards only, the decoder gets no summary, and
            with the selection "monotonic" or "mocha" evaluation never reads past the position where it stops.
        ctc_weight: how much CTC over the encoder's states counts in training, from 0 to less than 1: see
            `saccade.decoders.CTC`.
        dropout: applied to embeddings, and to features before the output.
        paper_start: initialises the weights as in the paper, for Adadelta.
    """

    def __init__(
        self,
        *,
        source_vocab: int | None = None,
        source_dim: int | None = None,
        source_stride: int = 1,
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        alignment_dim: int | None = None,
        maxout_dim: int | None = None,
        encoder: EncoderName | PictureEncoderName | Encoder | partial[Encoder] = "birnn",
        encoder_layers: int | None = None,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        query: Literal["state", "state_and_token"] = "state",
        cell: Literal["paper", "fast"] = "paper",
        readout_state: Literal["previous", "current"] = "previous",
        head: str | OutputHead | partial[OutputHead] = "linear",
        online: bool = False,
        ctc_weight: float = 0.0,
        dropout: float = 0.0,
        max_length: int = 512,
        paper_start: bool = False,
    ) -> None:
        if isinstance(encoder, partial) or encoder in PICTURE_ENCODERS:
            encoder = make_picture_encoder(encoder, features=source_dim, dim=hidden_dim, dropout=dropout)  # type: ignore[arg-type]
        if isinstance(encoder, str):
            if online and encoder not in ("birnn", "rnn"):
                raise ValueError(f"online=True uses its own encoder: omit encoder={encoder!r}.")
            name = "rnn" if online else encoder
            recurrent = name in ("birnn", "rnn", "pyramidal")
            embedding = embed_source(
                vocab=source_vocab,
                features=source_dim,
                stride=source_stride,
                dim=embedding_dim if recurrent else hidden_dim,
                positions=None if recurrent else "learned",
                max_length=max_length,
                dropout=dropout,
            )
            encoder = _make_encoder(name, embedding, embedding_dim, hidden_dim, encoder_layers, cell, dropout)
        context_dim = encoder.output_dim
        sizes = {
            "query_dim": hidden_dim if query == "state" else hidden_dim + embedding_dim,
            "key_dim": context_dim,
            "hidden_dim": alignment_dim or hidden_dim,
            "max_keys": max_length,
        }
        attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        if online and not attention.selection.online:
            raise ValueError(
                f"online=True needs the selection 'monotonic' or 'mocha' with hard_at_eval, got {selection!r}."
            )
        both_ways = isinstance(encoder, RecurrentEncoder | PyramidalEncoder) and encoder.output_dim == 2 * hidden_dim
        decoder = RNNSearchDecoder(
            embedding=TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            attention=attention,
            hidden_dim=hidden_dim,
            context_dim=context_dim,
            summary_dim=hidden_dim if both_ways else encoder.summary_dim,  # backward direction only, as in the paper
            maxout_dim=maxout_dim or embedding_dim,
            query=query,
            cell=cell,
            readout_state=readout_state,
            bridge=LearnedStart(hidden_dim=hidden_dim) if online else None,
            head=head,
            source_vocab=source_vocab,
            dropout=dropout,
        )
        super().__init__(encoder=encoder, decoder=decoder, ctc_weight=ctc_weight)
        if paper_start:
            initialisation.normal_and_orthogonal(self)
            attention.score.start_as_paper()


def _make_encoder(
    name: str,
    embedding: nn.Module,
    embedding_dim: int,
    hidden_dim: int,
    num_layers: int | None,
    cell: Literal["paper", "fast"],
    dropout: float,
) -> Encoder:
    if name in ("birnn", "rnn"):
        return RecurrentEncoder(
            embedding=embedding,
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers or 1,
            cell="paper_gru" if cell == "paper" else "gru",
            bidirectional=name == "birnn",
            dropout=dropout,
        )
    if name == "pyramidal":
        return PyramidalEncoder(
            embedding=embedding,
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            factors=[2] * ((num_layers or 3) - 1),
            cell="paper_gru" if cell == "paper" else "gru",
            dropout=dropout,
        )
    if name == "convolutional":
        return ConvolutionalEncoder(
            embedding=embedding, dim=hidden_dim, num_layers=3 if num_layers is None else num_layers, dropout=dropout
        )
    if name == "embedding":
        return EmbeddingEncoder(embedding=embedding, dim=hidden_dim)
    raise ValueError(f"Unknown encoder {name!r}.{nearest(name, get_args(EncoderName))}")
