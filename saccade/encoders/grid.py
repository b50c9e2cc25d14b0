"""Encoders of pictures: patches become a grid of annotations."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.encoders.base import Encoder, EncoderOutput, mean_of_real
from saccade.layers import SinusoidalPositions


class GridEncoder(Encoder):
    """Turns the patches of square pictures into annotations, one for each place of a grid.

    A new encoder sets `output_dim` and implements `annotate` and `grid`.

    Shapes:
        source (batch, patches, 3 patch²), line by line, mask bool (batch, patches) -> states (batch, places,
        output_dim), line by line, summary (batch, output_dim), the mean of the states.

    Args:
        patch: the side of the patches that the source consists of, in pixels.
    """

    def __init__(self, *, patch: int) -> None:
        super().__init__()
        check_count("patch", patch)
        self.patch = patch

    def annotate(self, pictures: Tensor) -> Tensor:
        """(batch, 3, side, side) -> (batch, output_dim, lines, columns)."""
        raise NotImplementedError

    def grid(self, side: int) -> int:
        """The lines of annotations, and the columns, of a picture with this side in pixels."""
        raise NotImplementedError

    def forward(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        pictures = from_patches(source, self.patch)
        states = self.annotate(pictures).flatten(2).transpose(1, 2)
        real = mask.any(1, keepdim=True).expand(-1, states.shape[1])
        return EncoderOutput(states, real, mean_of_real(states, real))

    def positions(self, mask: Tensor) -> Tensor:
        return self.grid(self.patch * math.isqrt(mask.shape[1])) ** 2 * mask.any(1)

    def source_length(self, positions: int) -> int:
        side = self.patch
        while self.grid(side + self.patch) ** 2 <= positions:
            side += self.patch
        return (side // self.patch) ** 2


class GridPositions(nn.Module):
    """Fixed positions of places in a grid: half of the features stand for the line, half for the column.

    Shapes:
        lines, columns -> (dim, lines, columns).
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        if dim % 2:
            raise ValueError(f"dim must be even, half for lines and half for columns, got {dim}.")
        self.table = SinusoidalPositions(dim=dim // 2)

    def forward(self, lines: int, columns: int) -> Tensor:
        down, across = self.table(lines).T, self.table(columns).T
        return torch.cat([down.unsqueeze(2).expand(-1, -1, columns), across.unsqueeze(1).expand(-1, lines, -1)])


def lines_of(source: Tensor, patch: int) -> int:
    """How many lines of patches a square picture has; raises if the source is not one."""
    lines = math.isqrt(source.shape[1])
    if source.dim() != 3 or lines**2 != source.shape[1] or source.shape[2] != 3 * patch**2:
        raise ValueError(
            f"source must be the patches of square pictures, (batch, lines x lines, {3 * patch**2}) for patch={patch}, "
            f"got {tuple(source.shape)}: the model's patch must be that of the image field."
        )
    return lines


def from_patches(source: Tensor, patch: int) -> Tensor:
    """(batch, patches, 3 patch²) -> (batch, 3, side, side)."""
    lines = lines_of(source, patch)
    parts = source.reshape(source.shape[0], lines, lines, 3, patch, patch)
    return parts.permute(0, 3, 1, 4, 2, 5).reshape(source.shape[0], 3, lines * patch, lines * patch)
