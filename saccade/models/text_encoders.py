"""Encoders of texts and of feature vectors, by name."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from saccade.encoders import ConvolutionalEncoder, EmbeddingEncoder, Encoder, LSTMNEncoder, RecurrentEncoder
from saccade.models.picture_encoders import PICTURE_ENCODERS, PictureEncoderName, make_picture_encoder
from saccade.models.sources import embed_source
from saccade.registry import nearest

EncoderName = Literal["birnn", "rnn", "bilstm", "lstm", "lstmn", "convolutional", "embedding"]


def make_encoder(
    encoder: EncoderName | PictureEncoderName | Encoder | partial[Encoder],
    *,
    vocab: int | None,
    features: int | None = None,
    embedding_dim: int,
    hidden_dim: int,
    num_layers: int,
    dropout: float,
    max_length: int,
) -> Encoder:
    """The encoder of this name for the tokens of a vocabulary, or for feature vectors; another is returned as it is."""
    if isinstance(encoder, Encoder | partial) or encoder in PICTURE_ENCODERS:
        return make_picture_encoder(encoder, features=features, dim=hidden_dim, dropout=dropout)  # type: ignore[arg-type]
    in_order = encoder == "convolutional"
    recurrent = encoder in ("birnn", "rnn", "bilstm", "lstm", "lstmn")
    embedding = embed_source(
        vocab=vocab,
        features=features,
        stride=1,
        dim=embedding_dim if recurrent else hidden_dim,
        positions="learned" if in_order else None,
        max_length=max_length,
        dropout=dropout,
    )
    if encoder in ("birnn", "rnn", "bilstm", "lstm"):
        return RecurrentEncoder(
            embedding=embedding,
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            cell="lstm" if encoder.endswith("lstm") else "gru",
            bidirectional=encoder.startswith("bi"),
            dropout=dropout,
        )
    if encoder == "lstmn":
        return LSTMNEncoder(
            embedding=embedding,
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
    if encoder == "convolutional":
        return ConvolutionalEncoder(embedding=embedding, dim=hidden_dim, num_layers=num_layers, dropout=dropout)
    if encoder == "embedding":
        return EmbeddingEncoder(embedding=embedding, dim=hidden_dim)
    raise ValueError(
        f"Unknown encoder {encoder!r}.{nearest(str(encoder), [*get_args(EncoderName), *PICTURE_ENCODERS])}"
    )
