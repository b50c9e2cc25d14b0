"""What a decoder that aligns keeps of the source."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.encoders import EncoderOutput


class Sources(NamedTuple):
    """The positions that a word may come from.

    Args:
        keys: (batch, sources, dim), what the readout sees of each position.
        prepared: what the transitions see of them.
        mask: bool (batch, sources), at least one of each row.
        real: bool (batch, length), those that there are.
        summary: (batch, input_dim), what every step is told of the whole source; None for nothing.
    """

    keys: Tensor
    prepared: Any
    mask: Tensor
    real: Tensor
    summary: Tensor | None


def with_a_source(encoded: EncoderOutput) -> tuple[Tensor, Tensor]:
    """States and mask in which a source of nothing is one position of zeros: a word comes from somewhere."""
    states, mask = encoded.states, encoded.mask
    if not mask.shape[1]:
        states, mask = F.pad(states, (0, 0, 0, 1)), F.pad(mask, (0, 1))
    states = torch.where(mask.unsqueeze(-1), states, 0.0)
    first = torch.arange(mask.shape[1], device=mask.device) == 0
    return states, mask | (first & ~mask.any(1, keepdim=True))
