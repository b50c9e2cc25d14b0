"""What an encoder is."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.layers import MaskedEmbedding
from saccade.layers.limits import fewest, most_keys, most_positions


class EncoderOutput(NamedTuple):
    """What was read of a source.

    Args:
        states: (batch, positions, dim), the keys and values of the memory that a decoder looks at.
        mask: bool (batch, positions), True = real; padding comes last. There are fewer positions than the source has
            steps if the encoder's embedding joins several steps.
        summary: what a decoder starts from: a tensor (batch, dim), or for each layer of a recurrent network its
            final state, tensors (batch, dim).
    """

    states: Tensor
    mask: Tensor
    summary: Any


class Encoder(nn.Module):
    """Anything that makes a source into states to look at."""

    output_dim: int
    """Features of the states."""

    summary_dim: int
    """Features of the summary, or of each tensor in it."""

    embedding: nn.Module
    """Source -> (batch, length, dim); a `MaskedEmbedding` may return fewer positions."""

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        """Reads source (batch, length), or (batch, length, features); mask bool (batch, length), padding last."""
        raise NotImplementedError

    def embed(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Embeds the source; the mask returned is that of the embeddings, which may be fewer than the source's."""
        if isinstance(self.embedding, MaskedEmbedding):
            embedded, mask = self.embedding(source, mask)
        else:
            embedded = self.embedding(source)
        return embedded, mask

    def max_positions(self) -> int | None:
        """The most positions that it can encode, or None."""
        return fewest([most_positions(self), most_keys(self)])

    def positions(self, mask: Tensor) -> Tensor:
        """(batch,): how many positions the sources with this mask get."""
        stride = self.embedding.stride if isinstance(self.embedding, MaskedEmbedding) else 1
        return (mask.sum(dim=1) + stride - 1) // stride

    def source_length(self, positions: int) -> int:
        """How many tokens besides the end, or how many feature vectors, fill so many positions."""
        embedding = getattr(self, "embedding", None)
        return positions * embedding.stride if isinstance(embedding, MaskedEmbedding) else positions - 1


def mean_of_real(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real states (batch, length, dim), zero where there is none."""
    real = mask.unsqueeze(-1)
    return torch.where(real, states, 0.0).sum(1) / real.sum(1).clamp(min=1)


def top_of(summary: Any) -> Tensor:
    """The summary as one tensor: what the last layer put out."""
    return summary if isinstance(summary, Tensor) else summary[-1][0]
