"""The base class of encoders."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.layers import MaskedEmbedding
from saccade.layers.limits import fewest, most_keys, most_positions
from saccade.registry import Registry


class SourceWords(NamedTuple):
    """The words at the positions of a source, for heads that read more than states.

    Args:
        mask: bool (batch, positions), True = real.
        tokens: (batch, positions), the ids of the source; None if it is not a text.
        words: (batch, positions), the same words as ids of the target's vocabulary, and from its size on as numbers of
            words that only this source has; None if nothing is to be copied.
    """

    mask: Tensor
    tokens: Tensor | None
    words: Tensor | None


class EncoderOutput(NamedTuple):
    """An encoded source.

    Args:
        states: (batch, positions, dim), the keys and values of the memory that a decoder looks at.
        mask: bool (batch, positions), True = real; padding comes last. There are fewer positions than source steps if
            the encoder's embedding joins several steps.
        summary: what a decoder starts from: a tensor (batch, dim), or the final state of each layer of a recurrent
            network, tensors (batch, dim).
        words: the words at the positions, if the decoder's head reads them.
    """

    states: Tensor
    mask: Tensor
    summary: Any
    words: SourceWords | None = None


class Encoder(nn.Module):
    """Turns a source into states to attend to."""

    output_dim: int
    """Features of the states."""

    summary_dim: int
    """Features of the summary, or of each tensor in it."""

    embedding: nn.Module
    """Source -> (batch, length, dim); a `MaskedEmbedding` may return fewer positions."""

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        """Encodes source (batch, length), or (batch, length, features); mask bool (batch, length), padding last."""
        raise NotImplementedError

    def embed(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Embeds the source; also returns the mask of the embeddings; there may be fewer of them than source steps."""
        if isinstance(self.embedding, MaskedEmbedding):
            embedded, mask = self.embedding(source, mask)
        else:
            embedded = self.embedding(source)
        return embedded, mask

    def max_positions(self) -> int | None:
        """The maximum number of positions that it can encode, or None."""
        return fewest([most_positions(self), most_keys(self)])

    @property
    def stride(self) -> int:
        """How many steps of the source become one position."""
        embedding = getattr(self, "embedding", None)
        return embedding.stride if isinstance(embedding, MaskedEmbedding) else 1

    def positions(self, mask: Tensor) -> Tensor:
        """(batch,): the number of positions for sources with this mask."""
        return (mask.sum(dim=1) + self.stride - 1) // self.stride

    def source_length(self, positions: int) -> int:
        """The number of tokens (without the end token) or feature vectors that fill this many positions."""
        of_features = isinstance(getattr(self, "embedding", None), MaskedEmbedding)
        return positions * self.stride - (0 if of_features else 1)


def mean_of_real(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real states (batch, length, dim), zero for rows without any."""
    real = mask.unsqueeze(-1)
    return torch.where(real, states, 0.0).sum(1) / real.sum(1).clamp(min=1)


def top_of(summary: Any) -> Tensor:
    """The summary as one tensor: the output of the last layer."""
    return summary if isinstance(summary, Tensor) else summary[-1][0]


encoders: Registry[Encoder] = Registry("encoder", base=Encoder, home="saccade.encoders")
