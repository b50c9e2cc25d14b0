"""Encoders of texts, by name."""

from __future__ import annotations

from typing import Literal

from saccade.encoders import ConvolutionalEncoder, EmbeddingEncoder, Encoder, RecurrentEncoder
from saccade.layers import TokenEmbedding
from saccade.registry import nearest

EncoderName = Literal["birnn", "rnn", "convolutional", "embedding"]


def make_encoder(
    encoder: EncoderName | Encoder,
    *,
    vocab: int,
    embedding_dim: int,
    hidden_dim: int,
    num_layers: int,
    dropout: float,
    max_length: int,
) -> Encoder:
    """The encoder of this name for the tokens of a vocabulary; another one is returned as it is."""
    if isinstance(encoder, Encoder):
        return encoder
    if encoder in ("birnn", "rnn"):
        return RecurrentEncoder(
            embedding=TokenEmbedding(vocab_size=vocab, dim=embedding_dim, dropout=dropout),
            input_dim=embedding_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            cell="gru",
            bidirectional=encoder == "birnn",
            dropout=dropout,
        )
    if encoder == "convolutional":
        embedding = TokenEmbedding(
            vocab_size=vocab, dim=hidden_dim, positions="learned", max_length=max_length, dropout=dropout
        )
        return ConvolutionalEncoder(embedding=embedding, dim=hidden_dim, num_layers=num_layers, dropout=dropout)
    if encoder == "embedding":
        embedding = TokenEmbedding(vocab_size=vocab, dim=hidden_dim, dropout=dropout)
        return EmbeddingEncoder(embedding=embedding, dim=hidden_dim)
    raise ValueError(f"Unknown encoder {encoder!r}.{nearest(encoder, ('birnn', 'rnn', 'convolutional', 'embedding'))}")
