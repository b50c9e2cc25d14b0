"""Embeddings of tokens and of feature vectors."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count, check_share
from saccade.layers.positions import LearnedPositions, SinusoidalPositions
from saccade.registry import nearest

PositionTable = Literal["sinusoidal", "learned"]


class TokenEmbedding(nn.Module):
    r"""Token embeddings, optionally with positions.

    .. math:: x_t = \sqrt{d}\, E_{y_t} + p_t

    The factor is used with `scale`, since embeddings that also serve as output weights start small.

    Shapes:
        token ids (*batch, length) -> (*batch, length, dim).
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        dim: int,
        scale: bool = False,
        positions: PositionTable | None = None,
        max_length: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_share("dropout", dropout)
        check_count("vocab_size", vocab_size)
        check_count("dim", dim)
        self.vocab_size, self.dim = vocab_size, dim
        self.table = nn.Embedding(vocab_size, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        self.factor = dim**0.5 if scale else 1.0
        self.positions = _positions(positions, dim, max_length)
        self.dropout = dropout

    @property
    def weight(self) -> nn.Parameter:
        weight = self.table.weight
        assert isinstance(weight, nn.Parameter)
        return weight

    def forward(self, tokens: Tensor, start: int = 0, *, places: Tensor | None = None) -> Tensor:
        """`start` is the position of the first token; or `places`, of the shape of the tokens, are those of all."""
        embedded: Tensor = self.table(tokens)
        if self.factor != 1.0:
            embedded = embedded * self.factor
        if self.positions is not None:
            count = tokens.shape[-1] if places is None else int(places.max()) + 1
            table = self.positions(count, start)
            embedded = embedded + (table if places is None else table[places])
        return F.dropout(embedded, self.dropout, self.training)


class MaskedEmbedding(nn.Module):
    """An embedding that gets the mask, and may return fewer positions than it was given.

    Shapes:
        source (batch, length, ...), mask bool (batch, length), padding last -> embeddings (batch, positions, dim) and
        their mask, bool (batch, positions).
    """

    stride: int = 1
    """How many steps of the source become one position."""

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class FeatureEmbedding(MaskedEmbedding):
    r"""Projects feature vectors, such as log-mel frames or sensor readings, optionally with positions.

    .. math:: x_t = W [f_{st}; \dots; f_{st + s - 1}] + b + p_t

    s is `stride`, the number of consecutive vectors that become one position. Padding, whatever it contains, counts as
    zeros; a position is real if any of its vectors is.

    Shapes:
        features (batch, length, input_dim), mask bool (batch, length), padding last
        -> (batch, ceil(length / stride), dim) and its mask.

    Reference:
        Stacked frames: Sak et al. (2015), arXiv:1507.06947, section 5.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        dim: int,
        stride: int = 1,
        positions: PositionTable | None = None,
        max_length: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_share("dropout", dropout)
        for name, count in (("input_dim", input_dim), ("dim", dim), ("stride", stride)):
            check_count(name, count)
        self.input_dim = input_dim
        self.stride = stride
        self.proj = nn.Linear(stride * input_dim, dim)
        nn.init.xavier_uniform_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)
        self.positions = _positions(positions, dim, max_length)
        self.dropout = dropout

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if source.dim() != 3 or source.shape[-1] != self.input_dim or not source.is_floating_point():
            raise ValueError(
                f"source must be floating point, (batch, length, {self.input_dim}), got {source.dtype} of shape "
                f"{tuple(source.shape)}: build the model with source_dim={source.shape[-1]} for this source, or with "
                "source_vocab for token ids."
            )
        frames, mask = stack_frames(source, mask, self.stride)
        embedded: Tensor = self.proj(frames.to(self.proj.weight.dtype))
        if self.positions is not None:
            embedded = embedded + self.positions(embedded.shape[1], 0)
        return F.dropout(embedded, self.dropout, self.training), mask


def stack_frames(frames: Tensor, mask: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    """Joins every `stride` frames of (batch, length, dim) into one, with zeros for padding and after the end."""
    frames = torch.where(mask.unsqueeze(-1), frames, 0.0)
    missing = -frames.shape[1] % stride
    frames = F.pad(frames, (0, 0, 0, missing))
    stacked = frames.reshape(frames.shape[0], frames.shape[1] // stride, stride * frames.shape[2])
    return stacked, mask[:, ::stride]


def _positions(kind: str | None, dim: int, max_length: int) -> nn.Module | None:
    if kind is None:
        return None
    if kind == "sinusoidal":
        return SinusoidalPositions(dim=dim)
    if kind == "learned":
        return LearnedPositions(dim=dim, max_length=max_length)
    raise ValueError(f"Unknown positions {kind!r}.{nearest(kind, ('sinusoidal', 'learned'))}")
