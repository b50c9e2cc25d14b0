"""Position vectors that are added to embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PositionVectors(nn.Module):
    """A vector for each position: (length, dim) of `length` positions, beginning with the one numbered `start`.

    A new kind implements `forward`, and sets `max_length` if the number of its positions is limited.
    """

    max_length: int | None = None

    def forward(self, length: int, start: int = 0) -> Tensor:
        raise NotImplementedError


class SinusoidalPositions(PositionVectors):
    r"""Fixed sinusoids of geometrically increasing wavelength, for any position; nothing is learned.

    .. math:: p_{t, 2i} = \sin(t / 10000^{2i/d}), \qquad p_{t, 2i+1} = \cos(t / 10000^{2i/d})

    Shapes:
        a number of positions -> (length, dim).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.5.
    """

    frequencies: Tensor

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.dim = dim
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        self.register_buffer("frequencies", frequencies.to(torch.get_default_dtype()), persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        positions = torch.arange(start, start + length, device=self.frequencies.device)
        angles = positions.unsqueeze(-1) * self.frequencies
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, : self.dim]


class LearnedPositions(PositionVectors):
    """A learned vector for each of the first `max_length` positions.

    Shapes:
        a number of positions -> (length, dim).

    Reference:
        Gehring et al. (2017), arXiv:1705.03122, section 3.1.
    """

    def __init__(self, *, dim: int, max_length: int) -> None:
        super().__init__()
        self.max_length: int = max_length
        self.table = nn.Parameter(torch.empty(max_length, dim))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, length: int, start: int = 0) -> Tensor:
        if start + length > self.max_length:
            raise ValueError(
                f"Position {start + length} is beyond max_length={self.max_length} of the learned positions: build the "
                "model with a larger max_length, pass shorter sequences, or use sinusoidal positions."
            )
        return self.table[start : start + length]
