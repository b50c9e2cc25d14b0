"""Moves some positions of each row to its front, so that a recurrent layer only steps over those."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.kernels.modes import exporting


def pack(values: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The kept positions of each row in their order, the mask of these, and where each came from.

    Shapes:
        values (rows, length, dim), kept bool (rows, length) -> (rows, most, dim), bool (rows, most), (rows, most),
        where most is the largest number of positions that a row keeps; in an exported graph, it is length.
    """
    counts = kept.sum(1)
    most = kept.shape[1] if exporting() or not kept.numel() else int(counts.max())
    after = torch.where(kept, kept.cumsum(1), counts.unsqueeze(1) + (~kept).cumsum(1)) - 1  # where each one goes
    order = torch.arange(kept.shape[1], device=kept.device).expand(kept.shape)
    places = torch.zeros_like(after).scatter(1, after, order)[:, :most]
    packed = values.gather(1, places.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
    return packed, torch.arange(most, device=kept.device) < counts.unsqueeze(1), places


def unpack(packed: Tensor, mask: Tensor, places: Tensor, length: int) -> Tensor:
    """Packed numbers (rows, most) at the places they came from, zero elsewhere: (rows, length)."""
    return packed.new_zeros(len(packed), length).scatter(1, places, packed.masked_fill(~mask, 0.0))
