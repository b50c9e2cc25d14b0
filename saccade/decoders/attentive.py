"""Decoders with one attention, which they ask before each step."""

from __future__ import annotations

from saccade.attention import Attention, check_one_by_one
from saccade.decoders.base import Decoder
from saccade.encoders import EncoderOutput
from saccade.layers import TokenEmbedding
from saccade.memory import Memory


class AttentiveDecoder(Decoder):
    """A decoder that reads the encoder's states before each step.

    Args:
        embedding: of the tokens that it writes.
        attention: its queries come one at a time.
        dropout: see the subclass.
    """

    def __init__(self, *, embedding: TokenEmbedding, attention: Attention, dropout: float) -> None:
        super().__init__()
        check_one_by_one(attention)
        self.vocab_size = embedding.vocab_size
        self.embedding = embedding
        self.attention = attention
        self.dropout = dropout

    def prepare(self, encoded: EncoderOutput) -> Memory:
        """The encoder's states as a memory, with the padding masked."""
        return self.attention.prepare(encoded.states, mask=encoded.mask.unsqueeze(1))
