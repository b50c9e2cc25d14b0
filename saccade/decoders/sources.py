"""The source as seen by an aligning decoder."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.encoders import EncoderOutput


class Sources(NamedTuple):
    """The source positions that a word may come from.

    Args:
        keys: (batch, sources, dim), the input of the readout for each position.
        prepared: the input of the transitions.
        mask: bool (batch, sources), True for at least one position per row.
        real: bool (batch, length), True for the actual positions.
        summary: (batch, input_dim), the summary of the source that every step gets; None for none.
    """

    keys: Tensor
    prepared: Any
    mask: Tensor
    real: Tensor
    summary: Tensor | None


def with_a_source(encoded: EncoderOutput) -> tuple[Tensor, Tensor]:
    """States and mask, with one position of zeros for an empty source, since every word needs a position."""
    states, mask = encoded.states, encoded.mask
    if not mask.shape[1]:
        states, mask = F.pad(states, (0, 0, 0, 1)), F.pad(mask, (0, 1))
    states = torch.where(mask.unsqueeze(-1), states, 0.0)
    first = torch.arange(mask.shape[1], device=mask.device) == 0
    return states, mask | (first & ~mask.any(1, keepdim=True))
